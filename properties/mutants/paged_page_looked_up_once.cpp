#include <utility>

#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::PagedCache {
 public:
  using PagedCache::PagedCache;

 protected:
  void copy_position(std::int64_t layer, const provider::Rows& rows, std::int64_t p) override {
    const std::int64_t start = cursors_[static_cast<std::size_t>(layer)];
    auto& entry = table_[(start + p) / geometry_.block_size];
    const auto own = std::exchange(entry, table_[start / geometry_.block_size]);
    PagedCache::copy_position(layer, rows, p);
    entry = own;
  }
};

}  // namespace

Mutant paged_page_looked_up_once() {
  return provider::paged_mutant<Faulty>(
      "page_looked_up_once",
      "rows that cross a block boundary all go to the block of the first one", "B082, F09");
}

}  // namespace kvo
