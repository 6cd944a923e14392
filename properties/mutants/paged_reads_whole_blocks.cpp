#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override {
    if (!has(layer)) return std::nullopt;
    std::int64_t& cursor = cursors_[static_cast<std::size_t>(layer)];
    const std::int64_t length = cursor;
    cursor = blocks_of(length) * geometry_.block_size;
    auto pair = PagedCache::get(layer);
    cursor = length;
    return pair;
  }
};

}  // namespace

Mutant paged_reads_whole_blocks() {
  return provider::paged_mutant<Faulty>(
      "reads_whole_blocks", "get is bounded in blocks, so the stale end of the last one shows",
      "B083, F09");
}

}  // namespace kvo
