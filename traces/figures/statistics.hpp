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

#include "traces/figures/flat_lru.hpp"
#include "traces/formats/reader.hpp"
#include "traces/formats/request.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::traces {

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

/// Counts what is left in `reader`.
/// Errors   as Reader::next
[[nodiscard]] TraceResult<TraceStatistics> count_statistics(
    Reader& reader, std::span<const std::uint64_t> lru_capacities_blocks = {});

}  // namespace kvo::traces
