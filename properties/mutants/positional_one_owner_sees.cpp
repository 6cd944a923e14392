#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] bool visible(const Look& look) const override {
    return CausalCache::visible(look) &&
           *look.held.cells[look.cell].owners.begin() == look.pass.sequences[look.row];
  }
};

}  // namespace

Mutant positional_one_owner_sees() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kCausal, "one_owner_sees",
                                           "of the sequences that share a cell only one sees it",
                                           "B122, F12");
}

}  // namespace kvo
