#include "properties/campaign/laws.hpp"

#include "properties/campaign/failed_allocations.hpp"

namespace kvo {

std::vector<const Law*> general_laws() {
  // Here each operation is carried out once for every allocation that it makes.
  constexpr std::uint64_t kShortScript = 30;
  static const LockstepLaw kAgrees("agrees_with_reference",
                                   "no script tells a subject from its reference", kLongScript, {});
  static const FailedAllocations kFails(
      "failed_allocation_changes_nothing",
      "an operation whose allocation fails leaves everything as it was, repeated or not",
      kShortScript);
  return {&kAgrees, &kFails};
}

}  // namespace kvo
