#include "properties/mutants/mutants.hpp"

namespace kvo {

#define KVO_MUTANT(function) Mutant function();
#include "properties/mutants/mutants.inc"
#undef KVO_MUTANT

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> kMutants{
#define KVO_MUTANT(function) function(),
#include "properties/mutants/mutants.inc"
#undef KVO_MUTANT
  };
  return kMutants;
}

const Mutant& canary() {
  return mutants().front();
}

}  // namespace kvo
