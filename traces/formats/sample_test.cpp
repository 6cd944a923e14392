#include "traces/formats/sample.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "traces/figures/generate.hpp"
#include "traces/figures/statistics.hpp"
#include "traces/figures/validate.hpp"
#include "traces/formats/mooncake.hpp"
#include "traces/io/test_files.hpp"

namespace kvo::traces {

namespace {

TEST(Sample, IsTheFileBesideTheCode) {
  EXPECT_EQ(sample_trace(), test::content_of(KVO_SAMPLE_FILE));
}

TEST(Sample, IsByteForByteWhatTheGeneratorMakes) {
  std::string made;
  for (const auto& request : generate({.seed = 1, .requests = 300}).value()) {
    made += to_mooncake_line(request) + '\n';
  }
  EXPECT_EQ(made, sample_trace()) << "the generator has changed: write the sample anew with it";
}

TEST(Sample, IsSoundAndSmall) {
  const auto found = test::result_of(Validator(), test::requests_in(sample_trace()));
  EXPECT_EQ(found.requests, 300u);
  EXPECT_EQ(found.errors() + found.warnings(), 0u);
  EXPECT_LT(sample_trace().size(), std::size_t{150} << 10);
}

TEST(Sample, HasTheseFigures) {
  const std::vector<std::uint64_t> capacities{50, 200};
  EXPECT_EQ(text(test::result_of(StatisticsCounter(capacities), test::requests_in(sample_trace()))),
            "requests            300\n"
            "input               mean 2,937.4, median 2,073.5, max 18,283 tokens\n"
            "output              mean 237.6, median 119.5, max 2,488 tokens\n"
            "duration            149.457 s, last arrival at 149.831 s\n"
            "blocks              1,861 references, 803 distinct\n"
            "prefix hits         1,058 blocks (56.85 %) with nothing evicted\n"
            "flat lru            50 blocks: 519 hits, 1,292 evictions\n"
            "flat lru            200 blocks: 844 hits, 817 evictions\n");
}

}  // namespace

}  // namespace kvo::traces
