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
    return CausalCache::visible(held, pass, except, row, cell) &&
           *held.cells[cell].owners.begin() == pass.sequences[row];
  }
};

}  // namespace

Mutant positional_one_owner_sees() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kCausal, "one_owner_sees",
                                           "of the sequences that share a cell only one sees it",
                                           "B122, F12");
}

}  // namespace kvo
