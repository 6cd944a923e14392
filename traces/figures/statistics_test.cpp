#include "traces/figures/statistics.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "traces/formats/sample.hpp"
#include "traces/io/test_files.hpp"

namespace kvo::traces {

namespace {

TraceStatistics statistics_of(const std::vector<Request>& requests,
                              const std::vector<std::uint64_t>& capacities = {}) {
  return test::result_of(StatisticsCounter(capacities), requests);
}

TEST(Statistics, OfNoRequestsAreZero) {
  const auto none = statistics_of({});
  EXPECT_EQ(none.requests, 0u);
  EXPECT_EQ(none.input, LengthSummary{});
  EXPECT_EQ(none.prefix_hit_share(), 0);
}

TEST(Statistics, SummariseLengths) {
  const auto three = statistics_of({{.input_tokens = 9, .output_tokens = 1},
                                    {.input_tokens = 1, .output_tokens = 1},
                                    {.input_tokens = 2, .output_tokens = 4}});
  EXPECT_EQ(three.input, (LengthSummary{.mean = 4, .median = 2, .max = 9}));
  EXPECT_EQ(three.output, (LengthSummary{.mean = 2, .median = 1, .max = 4}));
  const auto two = statistics_of({{.input_tokens = 1}, {.input_tokens = 2}});
  EXPECT_EQ(two.input.median, 1.5);
}

TEST(Statistics, MeasureTimeFromTheEarliestToTheLatest) {
  const auto all = statistics_of({{.arrival_us = 500}, {.arrival_us = -100}, {.arrival_us = 300}});
  EXPECT_EQ(all.duration_us, 600);
  EXPECT_EQ(all.last_arrival_us, 500);
}

TEST(Statistics, CountLeadingBlocksOnlyAsPrefixHits) {
  const auto all = statistics_of({{.block_ids = {1, 2, 3}},
                                  {.block_ids = {1, 2, 4, 3}},  // 3 is after a new block.
                                  {.block_ids = {5, 1}}});
  EXPECT_EQ(all.block_references, 9u);
  EXPECT_EQ(all.distinct_blocks, 5u);
  EXPECT_EQ(all.prefix_hits, 2u);
  EXPECT_DOUBLE_EQ(all.prefix_hit_share(), 2.0 / 9);
}

TEST(FlatLru, EvictsTheLeastRecentlyUsedBlock) {
  FlatLru cache(3);
  cache.request(std::vector<std::size_t>{1, 2, 3});
  cache.request(std::vector<std::size_t>{1});        // One hit; 2 is the oldest now.
  cache.request(std::vector<std::size_t>{4});        // Evicts 2.
  cache.request(std::vector<std::size_t>{1, 2, 3});  // One hit; 2 evicts 3, and 3 evicts 4.
  EXPECT_EQ(cache.count(), (LruCount{.capacity_blocks = 3, .hits = 2, .evictions = 3}));
}

TEST(FlatLru, CountsHitsBeforeItTouches) {
  // With room for two blocks, 1 is gone when the request that begins with it comes again.
  FlatLru cache(2);
  cache.request(std::vector<std::size_t>{1, 2, 3});
  cache.request(std::vector<std::size_t>{1, 2, 3});
  EXPECT_EQ(cache.count(), (LruCount{.capacity_blocks = 2, .hits = 0, .evictions = 4}));
}

TEST(FlatLru, OfNoCapacityEvictsEverything) {
  FlatLru cache(0);
  cache.request(std::vector<std::size_t>{1, 1});
  EXPECT_EQ(cache.count(), (LruCount{.capacity_blocks = 0, .hits = 0, .evictions = 2}));
}

TEST(FlatLru, WithRoomForAllHasTheHitsOfAnEndlessCache) {
  const auto all = statistics_of(test::requests_in(sample_trace()), {1'000'000});
  ASSERT_EQ(all.lru.size(), 1u);
  EXPECT_EQ(all.lru[0].hits, all.prefix_hits);
  EXPECT_EQ(all.lru[0].evictions, 0u);
}

TEST(Statistics, TextHasALineAFigure) {
  const std::string content =
      "{\"timestamp\": 0, \"input_length\": 1024, \"output_length\": 3, \"hash_ids\": [1, 2]}\n"
      "{\"timestamp\": 1500, \"input_length\": 600, \"output_length\": 4, \"hash_ids\": [1, 3]}\n";
  EXPECT_EQ(text(statistics_of(test::requests_in(content), {2})),
            "requests            2\n"
            "input               mean 812.0, median 812, max 1,024 tokens\n"
            "output              mean 3.5, median 3.5, max 4 tokens\n"
            "duration            1.500 s, last arrival at 1.500 s\n"
            "blocks              4 references, 3 distinct\n"
            "prefix hits         1 block (25.00 %) with nothing evicted\n"
            "flat lru            2 blocks: 1 hit, 1 eviction\n");
}

TEST(Statistics, TextSaysWhatTheReaderSkipped) {
  TraceStatistics statistics;
  statistics.skipped.failed = 1'200;
  EXPECT_NE(text(statistics).find("skipped             1,200 failed\n"), std::string::npos);
}

}  // namespace

}  // namespace kvo::traces
