// The four caches of this folder and their faults with every command of kvoracle:
// `example_own_caches learn prefix.blocks@own`, `... check prefix.blocks@own:third_block_leaks`.
#include "examples/own_caches/own_caches.hpp"
#include "tools/kvo_main.hpp"

int main(int argc, char** argv) {
  return kvo::main(argc, argv, own::subjects());
}
