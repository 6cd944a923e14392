#include "traces/figures/flat_lru.hpp"

namespace kvo::traces {

void FlatLru::request(std::span<const std::uint64_t> block_ids) {
  for (const std::uint64_t id : block_ids) {
    if (!where_.contains(id)) break;
    ++count_.hits;
  }
  for (const std::uint64_t id : block_ids) touch(id);
}

void FlatLru::touch(std::uint64_t id) {
  if (const auto found = where_.find(id); found != where_.end()) {
    order_.splice(order_.end(), order_, found->second);
    return;
  }
  where_.emplace(id, order_.insert(order_.end(), id));
  if (order_.size() <= count_.capacity_blocks) return;
  where_.erase(order_.front());
  order_.pop_front();
  ++count_.evictions;
}

}  // namespace kvo::traces
