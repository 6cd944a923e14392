#include "properties/laws.hpp"

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
  };
  return kLaws;
}

}  // namespace kvo
