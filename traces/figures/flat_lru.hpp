// traces/figures/flat_lru.hpp: the plainest prefix cache there is, for the figures that describe a
// trace.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>

#include <boost/describe/class.hpp>

namespace kvo::traces {

/// What a cache of one capacity would do with a trace.
struct LruCount {
  std::uint64_t capacity_blocks = 0;
  std::uint64_t hits = 0;       ///< blocks
  std::uint64_t evictions = 0;  ///< blocks

  friend bool operator==(const LruCount&, const LruCount&) = default;
};
BOOST_DESCRIBE_STRUCT(LruCount, (), (capacity_blocks, hits, evictions))

/// Blocks by least recent use, blind to prefixes. The hits of a request are its leading blocks that
/// are cached when it arrives; then all its blocks are touched in order, missing ones inserted, and
/// the least recently used one evicted whenever the cache is over capacity.
class FlatLru {
 public:
  explicit FlatLru(std::uint64_t capacity_blocks) : count_{.capacity_blocks = capacity_blocks} {}

  /// One request arrives.
  void request(std::span<const std::uint64_t> block_ids);

  [[nodiscard]] const LruCount& count() const { return count_; }

 private:
  void touch(std::uint64_t id);

  LruCount count_;
  std::list<std::uint64_t> order_;  // least recently used first
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> where_;
};

}  // namespace kvo::traces
