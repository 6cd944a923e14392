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
           held.cells[cell].position > pass.positions[row] - window();
  }
};

}  // namespace

Mutant positional_window_one_short() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kSwa, "window_one_short",
                                           "a token sees one position less than its window",
                                           "B003, F01");
}

}  // namespace kvo
