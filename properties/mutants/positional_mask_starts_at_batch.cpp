#include <algorithm>

#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] bool visible(const Look& look) const override {
    const std::int32_t first = *std::ranges::min_element(look.pass.positions);
    return CausalCache::visible(look) && look.seen() >= first;
  }
};

}  // namespace

Mutant positional_mask_starts_at_batch() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kCausal, "mask_starts_at_batch",
                                           "a later part of a prompt does not see the parts before",
                                           "B109, F12");
}

}  // namespace kvo
