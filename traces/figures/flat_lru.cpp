#include "traces/figures/flat_lru.hpp"

#include <algorithm>

namespace kvo::traces {

void FlatLru::request(std::span<const std::size_t> blocks) {
  // Nothing is evicted before the first block that is missing.
  bool leading = true;
  for (const std::size_t block : blocks) {
    leading = touch(block + 1) && leading;
    count_.hits += leading ? 1 : 0;
  }
}

bool FlatLru::touch(std::size_t place) {
  if (place >= nodes_.size()) nodes_.resize(std::max(place + 1, 2 * nodes_.size()));
  const bool cached = nodes_[place].after != kAbsent;
  if (cached) {
    unlink(place);
  } else if (cached_ < count_.capacity_blocks) {
    ++cached_;
  } else {
    ++count_.evictions;
    if (count_.capacity_blocks == 0) return false;
    const std::size_t oldest = nodes_.front().after;
    unlink(oldest);
    nodes_[oldest].after = kAbsent;
  }
  link_last(place);
  return cached;
}

void FlatLru::unlink(std::size_t place) {
  nodes_[nodes_[place].before].after = nodes_[place].after;
  nodes_[nodes_[place].after].before = nodes_[place].before;
}

void FlatLru::link_last(std::size_t place) {
  const std::size_t last = nodes_.front().before;
  nodes_[place] = {.before = last, .after = 0};
  nodes_[last].after = place;
  nodes_.front().before = place;
}

}  // namespace kvo::traces
