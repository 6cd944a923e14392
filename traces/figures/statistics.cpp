#include "traces/figures/statistics.hpp"

#include <algorithm>
#include <locale>
#include <utility>

#include <fmt/format.h>

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

namespace {

constexpr double kMicrosecondsPerSecond = 1e6;

/// Digits in groups of three: "1,234,567", whatever the user's locale.
struct Thousands : std::numpunct<char> {
  [[nodiscard]] char do_thousands_sep() const override { return ','; }
  [[nodiscard]] std::string do_grouping() const override { return "\3"; }
};

template <class... Values>
std::string grouped(fmt::format_string<Values...> format, Values&&... values) {
  static const std::locale kGrouped(std::locale::classic(), new Thousands);  // the locale owns it
  return fmt::format(kGrouped, format, std::forward<Values>(values)...);
}

/// "1 block", "1,234 blocks"
std::string counted(std::uint64_t count, std::string_view noun) {
  return grouped("{:L} {}{}", count, noun, count == 1 ? "" : "s");
}

double seconds(std::int64_t us) {
  return static_cast<double>(us) / kMicrosecondsPerSecond;
}

std::string length_line(const char* what, const LengthSummary& lengths) {
  return grouped("{:<20}mean {:.1Lf}, median {:L}, max {:L} tokens\n", what, lengths.mean,
                 lengths.median, lengths.max);
}

/// The length of the request with index `rank` if requests were sorted by length.
std::int64_t at_rank(const std::map<std::int64_t, std::uint64_t>& histogram, std::uint64_t rank) {
  for (const auto& [tokens, requests] : histogram) {
    if (rank < requests) return tokens;
    rank -= requests;
  }
  return 0;
}

}  // namespace

double TraceStatistics::prefix_hit_share() const {
  if (block_references == 0) return 0;
  return static_cast<double>(prefix_hits) / static_cast<double>(block_references);
}

std::string text(const TraceStatistics& statistics) {
  std::string all = grouped("{:<20}{:L}\n", "requests", statistics.requests);
  if (statistics.skipped.failed != 0) {
    all += grouped("{:<20}{:L} failed\n", "skipped", statistics.skipped.failed);
  }
  all += length_line("input", statistics.input);
  all += length_line("output", statistics.output);
  all += grouped("{:<20}{:.3Lf} s, last arrival at {:.3Lf} s\n", "duration",
                 seconds(statistics.duration_us), seconds(statistics.last_arrival_us));
  if (statistics.block_references == 0) return all;
  all += grouped("{:<20}{}, {:L} distinct\n", "blocks",
                 counted(statistics.block_references, "reference"), statistics.distinct_blocks);
  all += grouped("{:<20}{} ({:.2f} %) with nothing evicted\n", "prefix hits",
                 counted(statistics.prefix_hits, "block"), 100 * statistics.prefix_hit_share());
  for (const LruCount& lru : statistics.lru) {
    all += fmt::format("{:<20}{}: {}, {}\n", "flat lru", counted(lru.capacity_blocks, "block"),
                       counted(lru.hits, "hit"), counted(lru.evictions, "eviction"));
  }
  return all;
}

StatisticsCounter::StatisticsCounter(std::span<const std::uint64_t> lru_capacities_blocks)
    : caches_(lru_capacities_blocks.begin(), lru_capacities_blocks.end()) {}

void StatisticsCounter::add(const Request& request) {
  const bool is_first = so_far_.requests++ == 0;
  first_arrival_us_ =
      is_first ? request.arrival_us : std::min(first_arrival_us_, request.arrival_us);
  so_far_.last_arrival_us =
      is_first ? request.arrival_us : std::max(so_far_.last_arrival_us, request.arrival_us);
  ++input_[request.input_tokens];
  ++output_[request.output_tokens];

  so_far_.block_references += request.block_ids.size();
  const std::size_t known = numbers_.size();
  blocks_.clear();
  bool leading = true;
  for (const std::uint64_t id : request.block_ids) {
    blocks_.push_back(numbers_.try_emplace(id, numbers_.size()).first->second);
    leading = leading && blocks_.back() < known;
    so_far_.prefix_hits += leading ? 1 : 0;
  }
  for (FlatLru& cache : caches_) cache.request(blocks_);
}

LengthSummary StatisticsCounter::summary(const Histogram& histogram, std::uint64_t requests) {
  if (requests == 0) return {};
  double sum = 0;
  for (const auto& [tokens, count] : histogram) {
    sum += static_cast<double>(tokens) * static_cast<double>(count);
  }
  const auto low = static_cast<double>(at_rank(histogram, (requests - 1) / 2));
  const auto high = static_cast<double>(at_rank(histogram, requests / 2));
  return {.mean = sum / static_cast<double>(requests),
          .median = (low + high) / 2,
          .max = histogram.rbegin()->first};
}

TraceStatistics StatisticsCounter::result() const {
  TraceStatistics statistics = so_far_;
  statistics.input = summary(input_, so_far_.requests);
  statistics.output = summary(output_, so_far_.requests);
  statistics.duration_us = so_far_.last_arrival_us - first_arrival_us_;
  statistics.distinct_blocks = numbers_.size();
  for (const FlatLru& cache : caches_) statistics.lru.push_back(cache.count());
  return statistics;
}

}  // namespace kvo::traces
