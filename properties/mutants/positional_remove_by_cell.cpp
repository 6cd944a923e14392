#include <utility>

#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] Status cut(Cells& held, std::int64_t sequence, std::int32_t begin,
                           std::int32_t end) const override {
    for (std::size_t cell = 0; cell < held.cells.size(); ++cell)
      if (held.owns(sequence, cell) && std::cmp_greater_equal(cell, begin) &&
          std::cmp_less(cell, end))
        held.cells[cell].owners.erase(sequence);
    held.record(sequence);
    return CausalCache::cut(held, sequence, end, end);
  }
};

}  // namespace

Mutant positional_remove_by_cell() {
  return positional::causal_mutant<Faulty>(
      positional::Flavour::kCausal, "remove_by_cell",
      "a range of positions is looked for among the numbers of cells", "B018, F03");
}

}  // namespace kvo
