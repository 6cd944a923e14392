// traces/figures/statistics.hpp: a trace in figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include "traces/formats/reader.hpp"
#include "traces/formats/request.hpp"

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

/// Lengths of all prompts or of all answers, in tokens; all zero without requests.
struct LengthSummary {
  double mean = 0;
  double median = 0;  ///< the mean of the middle two where their number is even
  std::int64_t max = 0;

  friend bool operator==(const LengthSummary&, const LengthSummary&) = default;
};
BOOST_DESCRIBE_STRUCT(LengthSummary, (), (mean, median, max))

/// What is printed about a trace.
struct TraceStatistics {
  std::uint64_t requests = 0;
  Skipped skipped;
  LengthSummary input;
  LengthSummary output;
  std::int64_t duration_us = 0;      ///< from the earliest to the latest arrival
  std::int64_t last_arrival_us = 0;  ///< the latest, since the trace began
  std::uint64_t block_references = 0;
  std::uint64_t distinct_blocks = 0;
  /// Leading blocks of requests that stood in an earlier request: hits with nothing ever evicted.
  std::uint64_t prefix_hits = 0;
  std::vector<LruCount> lru;

  /// prefix_hits / block_references; 0 without blocks.
  [[nodiscard]] double prefix_hit_share() const;
};
BOOST_DESCRIBE_STRUCT(TraceStatistics, (),
                      (requests, skipped, input, output, duration_us, last_arrival_us,
                       block_references, distinct_blocks, prefix_hits, lru))

/// The figures as lines for people, each ended by LF.
[[nodiscard]] std::string text(const TraceStatistics& statistics);

/// Counts requests one by one. Memory grows with the numbers of distinct ids and lengths.
class StatisticsCounter {
 public:
  /// Counts also what flat LRU caches of the given capacities would do.
  explicit StatisticsCounter(std::span<const std::uint64_t> lru_capacities_blocks = {});

  /// Counts the next request.
  void add(const Request& request);

  /// The figures so far.
  [[nodiscard]] TraceStatistics result() const;

 private:
  using Histogram = std::map<std::int64_t, std::uint64_t>;  // tokens to requests
  static LengthSummary summary(const Histogram& histogram, std::uint64_t requests);

  TraceStatistics so_far_;  // the counters; the summaries are made by result()
  std::int64_t first_arrival_us_ = 0;
  Histogram input_;
  Histogram output_;
  // Blocks are counted as they come, so that each id is looked up once for all caches.
  boost::unordered_flat_map<std::uint64_t, std::size_t> numbers_;
  std::vector<std::size_t> blocks_;  // of the request that is added
  std::vector<FlatLru> caches_;
};

}  // namespace kvo::traces
