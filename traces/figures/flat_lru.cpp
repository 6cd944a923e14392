#include "traces/figures/flat_lru.hpp"

namespace kvo::traces {

void FlatLru::request(std::span<const std::uint64_t> block_ids) {
  // Nothing is evicted before the first block that is missing.
  bool leading = true;
  for (const std::uint64_t id : block_ids) {
    leading = touch(id) && leading;
    count_.hits += leading ? 1 : 0;
  }
}

bool FlatLru::touch(std::uint64_t id) {
  const auto [found, fresh] = where_.try_emplace(id, nodes_.size());
  if (!fresh) {
    unlink(nodes_[found->second]);
    link_last(found->second);
    return true;
  }
  if (nodes_.size() <= count_.capacity_blocks) {
    nodes_.push_back({.id = id});
    link_last(nodes_.size() - 1);
    return false;
  }
  ++count_.evictions;
  if (count_.capacity_blocks == 0) {
    where_.erase(found);
    return false;
  }
  const std::size_t oldest = nodes_.front().after;
  found->second = oldest;
  where_.erase(nodes_[oldest].id);
  unlink(nodes_[oldest]);
  nodes_[oldest].id = id;
  link_last(oldest);
  return false;
}

void FlatLru::unlink(const Node& node) {
  nodes_[node.before].after = node.after;
  nodes_[node.after].before = node.before;
}

void FlatLru::link_last(std::size_t place) {
  nodes_[place].before = nodes_.front().before;
  nodes_[place].after = 0;
  nodes_[nodes_.front().before].after = place;
  nodes_.front().before = place;
}

}  // namespace kvo::traces
