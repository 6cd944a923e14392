#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] bool visible(const Look& look) const override {
    if (look.pass.targets.empty() || !look.except.empty()) return CausalCache::visible(look);
    return look.owned() && look.cell <= look.pass.targets[look.row];
  }
};

}  // namespace

Mutant positional_mask_by_cell_order() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kCausal, "mask_by_cell_order",
                                           "earlier is what has a lower cell, not a lower position",
                                           "B110, F12");
}

}  // namespace kvo
