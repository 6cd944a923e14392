// Every command of kvoracle for a contract that kvoracle has never heard of.
#include "ring.hpp"
#include "tools/kvo_main.hpp"

int main(int argc, char** argv) {
  const kvo::ContractRow row{.name = "ring",
                             .references = ring::references,
                             .optimized = ring::optimized,
                             .generators = ring::generators,
                             .lowerings = ring::lowerings,
                             .mutants = ring::mutants};
  return kvo::main(argc, argv, {}, {row});
}
