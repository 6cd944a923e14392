#include "properties/mutants/block_pool_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public block_pool::StackPool {
 public:
  using StackPool::StackPool;
  [[nodiscard]] block_pool::Sides sides(std::int64_t block) override {
    const auto side = static_cast<std::size_t>(sizes_.side);
    const std::span<float> both =
        std::span(cells_).subspan(static_cast<std::size_t>(block) * 2 * side, 2 * side);
    return {both.first(side), both.subspan(side - 1, side)};
  }
};

}  // namespace

Mutant block_pool_sides_overlap() {
  return block_pool::mutant_of<Faulty>(
      "sides_overlap", "the first V cell of a block is the last K cell", "B086, F09");
}

}  // namespace kvo
