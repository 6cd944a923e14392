#include "properties/laws.hpp"

#include "properties/positional_history.hpp"

namespace kvo {

const std::vector<Law>& laws() {
  static const std::vector<Law> kLaws{
      {.name = "agrees_with_reference",
       .doc = "no script tells a subject from its reference",
       .allocations = Allocations::kSucceed,
       .most_operations = 80},
      {.name = "failed_allocation_changes_nothing",
       .doc = "an operation whose k-th allocation fails leaves everything as it was, for every k",
       .allocations = Allocations::kFailEach,
       .most_operations = 30},
      {.name = "recompute_equivalence",
       .doc = "attention over what get shows equals attention recomputed from the whole history",
       .watch = positional::watch_history,
       .most_operations = 80},
  };
  return kLaws;
}

bool Law::applies_to(const CacheKind& kind) const {
  return watch == nullptr || watch(kind, {}) != nullptr;
}

std::vector<const Law*> laws_of(const CacheKind& kind) {
  std::vector<const Law*> apply;
  for (const Law& law : laws())
    if (law.applies_to(kind)) apply.push_back(&law);
  return apply;
}

}  // namespace kvo
