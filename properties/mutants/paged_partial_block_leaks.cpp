#include <algorithm>

#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Status free() override {
    const bool partial = std::ranges::any_of(
        cursors_, [&](std::int64_t cursor) { return cursor % geometry_.block_size != 0; });
    if (partial && table_.size > 0) --table_.size;
    return PagedCache::free();
  }
  [[nodiscard]] Status reset() override { return free(); }
};

}  // namespace

Mutant paged_partial_block_leaks() {
  return provider::paged_mutant<Faulty>(
      "partial_block_leaks", "a last block that is not full is never given back", "B042, F05");
}

}  // namespace kvo
