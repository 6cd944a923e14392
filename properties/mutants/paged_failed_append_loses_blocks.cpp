#include <algorithm>
#include <vector>

#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override {
    if (!check_k(layer, rows)) return PagedCache::update(layer, rows);
    const std::int64_t end = cursors_[static_cast<std::size_t>(layer)] + rows.k->shape[1];
    std::vector<std::int64_t> blocks(
        static_cast<std::size_t>(std::max<std::int64_t>(0, blocks_of(end) - table_.size)));
    if (!pool_->alloc(owner_, blocks)) return PagedCache::update(layer, rows);
    BlockTable grown = table_;  // when this throws, nobody gives the blocks back
    grown.reserve(blocks_of(end));
    std::ranges::reverse(blocks);
    pool_->free(owner_, blocks);
    return PagedCache::update(layer, rows);
  }
};

}  // namespace

Mutant paged_failed_append_loses_blocks() {
  return provider::paged_mutant<Faulty>(
      "failed_append_loses_blocks",
      "blocks are taken before the table has room for them, and lost when it cannot grow",
      "B050, F05");
}

}  // namespace kvo
