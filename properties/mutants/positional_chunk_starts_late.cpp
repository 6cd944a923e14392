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
    const std::int64_t own = pass.positions[row];
    return CausalCache::visible(held, pass, except, row, cell) &&
           (chunk() <= 0 || own % chunk() == 0 || held.cells[cell].position > own - own % chunk());
  }
};

}  // namespace

Mutant positional_chunk_starts_late() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kChunked, "chunk_starts_late",
                                           "a chunk begins one position late", "B106, F12");
}

}  // namespace kvo
