#include <algorithm>

#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] bool visible(const Cells& held, const Pass& pass,
                             const std::vector<std::int64_t>& except, std::size_t row,
                             std::size_t cell) const override {
    const std::int32_t first = *std::ranges::min_element(pass.positions);
    return CausalCache::visible(held, pass, except, row, cell) &&
           held.cells[cell].position >= first;
  }
};

}  // namespace

Mutant positional_mask_starts_at_batch() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kCausal, "mask_starts_at_batch",
                                           "a later part of a prompt does not see the parts before",
                                           "B109, F12");
}

}  // namespace kvo
