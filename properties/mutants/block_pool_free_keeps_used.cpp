#include "properties/mutants/block_pool_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public block_pool::StackPool {
 public:
  using StackPool::StackPool;
  void free(block_pool::Owner owner, std::span<const std::int64_t> blocks) override {
    const auto kept = used_;
    StackPool::free(owner, blocks);
    used_ = kept;
  }
};

}  // namespace

Mutant block_pool_free_keeps_used() {
  return block_pool::mutant_of<Faulty>(
      "free_keeps_used", "a freed block keeps its count of used positions", "Z5, F05");
}

}  // namespace kvo
