#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Status free() override {
    if (table_.size > 1 && table_[0].has_value()) pool_->free(owner_, {&*table_[0], 1});
    return PagedCache::free();
  }
  [[nodiscard]] Status reset() override { return free(); }
};

}  // namespace

Mutant paged_block_freed_twice() {
  return provider::paged_mutant<Faulty>(
      "block_freed_twice", "free gives the first of several blocks back twice", "B039, F05");
}

}  // namespace kvo
