#include "properties/mutants/block_pool_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public block_pool::StackPool {
 public:
  using StackPool::StackPool;
  void free(block_pool::Owner owner, std::span<const std::int64_t> blocks) override {
    for (const std::int64_t& block : blocks)
      if (used(block) > 0) StackPool::free(owner, {&block, 1});
  }
};

}  // namespace

Mutant block_pool_unused_not_freed() {
  return block_pool::mutant_of<Faulty>(
      "unused_not_freed", "a block that was handed out but never filled is not taken back",
      "B042, F05");
}

}  // namespace kvo
