// tools/main.cpp: the `kvoracle` command.
#include "tools/kvo_main.hpp"

int main(int argc, char** argv) {
  return kvo::main(argc, argv);
}
