#include <algorithm>

#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override {
    const BlockTable table = table_;
    for (std::int64_t i = 1; i < table_.size; ++i)
      if (table_[i].has_value() && table_[0].has_value())
        table_[i] = std::min(*table_[0] + i, pool_->cap() - 1);
    auto pair = PagedCache::get(layer);
    table_ = table;
    return pair;
  }
};

}  // namespace

Mutant paged_table_taken_for_run() {
  return provider::paged_mutant<Faulty>(
      "table_taken_for_run",
      "get takes the blocks that follow the first one instead of those in the table", "B087, F09");
}

}  // namespace kvo
