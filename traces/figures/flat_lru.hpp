// traces/figures/flat_lru.hpp: the plainest prefix cache there is, for the figures that describe a
// trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

  /// One request arrives. Blocks are known by numbers from 0 on: memory grows with the largest.
  void request(std::span<const std::size_t> blocks);

  [[nodiscard]] const LruCount& count() const { return count_; }

 private:
  static constexpr std::size_t kAbsent = SIZE_MAX;

  /// A block in the order of use, a ring through places of nodes_.
  struct Node {
    std::size_t before = 0;
    std::size_t after = kAbsent;
  };

  // Whether the block was there.
  bool touch(std::size_t place);
  void unlink(std::size_t place);
  void link_last(std::size_t place);

  LruCount count_;
  std::uint64_t cached_ = 0;
  // A block's place is its number and one; the first is no block: what follows it was used first.
  std::vector<Node> nodes_{Node{.before = 0, .after = 0}};
};

}  // namespace kvo::traces
