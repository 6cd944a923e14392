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
    if (pass.targets.empty() || !except.empty())
      return CausalCache::visible(held, pass, except, row, cell);
    return held.owns(pass.sequences[row], cell) && cell <= pass.targets[row];
  }
};

}  // namespace

Mutant positional_mask_by_cell_order() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kCausal, "mask_by_cell_order",
                                           "earlier is what has a lower cell, not a lower position",
                                           "B110, F12");
}

}  // namespace kvo
