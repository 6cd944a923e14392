#include <algorithm>

#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override {
    const Status done = PagedCache::update(layer, rows);
    if (!done && done.error().code == Code::kExhausted) {
      std::int64_t& cursor = cursors_[static_cast<std::size_t>(layer)];
      cursor = std::max(cursor, table_.size * geometry_.block_size);
    }
    return done;
  }
};

}  // namespace

Mutant paged_dry_append_counts() {
  return provider::paged_mutant<Faulty>(
      "dry_append_counts",
      "the rows stored before the pool ran dry count, though the append failed", "B035, F04");
}

}  // namespace kvo
