// The figures that are known of two published traces, where a folder with them was named.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "traces/figures/statistics.hpp"
#include "traces/figures/validate.hpp"
#include "traces/formats/formats.hpp"
#include "traces/io/test_files.hpp"

namespace kvo::traces {

namespace {

class RealTrace : public testing::Test {
 protected:
  /// Opens a trace of the folder; skips the test if it is not there.
  void open(const std::string& name) {
    const std::string folder = KVO_TRACES_DIR;
    if (!std::filesystem::exists(folder))
      GTEST_SKIP() << "no folder of real traces: set KVO_SHARED_DATA";
    path_ = (std::filesystem::path(folder) / name).string();
    if (!std::filesystem::exists(path_)) GTEST_SKIP() << "there is no " << path_;
  }

  [[nodiscard]] TraceStatistics statistics(
      const std::vector<std::uint64_t>& capacities = {}) const {
    return test::result_of(StatisticsCounter(capacities), requests());
  }

  [[nodiscard]] Validation validation() const { return test::result_of(Validator(), requests()); }

  [[nodiscard]] std::vector<Request> requests() const {
    return read_all(*open_trace(path_).value()).value();
  }

  std::string path_;
};

TEST_F(RealTrace, MooncakeConversationHasItsPublishedFigures) {
  open("mooncake_conversation.jsonl");
  if (IsSkipped()) return;
  const auto all = statistics({1'000, 10'000, 50'000});
  EXPECT_EQ(all.requests, 12'031u);
  EXPECT_NEAR(all.input.mean, 12'035, 0.5);
  EXPECT_NEAR(all.output.mean, 343, 0.5);
  EXPECT_EQ(all.last_arrival_us, 3'536'999'000);
  EXPECT_EQ(all.block_references, 288'500u);
  EXPECT_EQ(all.distinct_blocks, 182'790u);
  EXPECT_EQ(all.prefix_hits, 105'710u);
  EXPECT_EQ(all.lru,
            (std::vector<LruCount>{
                {1'000, 12'831, 274'669}, {10'000, 60'921, 217'579}, {50'000, 102'290, 136'210}}));
}

TEST_F(RealTrace, MooncakeConversationIsSound) {
  open("mooncake_conversation.jsonl");
  if (IsSkipped()) return;
  EXPECT_EQ(validation().errors() + validation().warnings(), 0u);
}

TEST_F(RealTrace, AzureCodeHasTheseFigures) {
  open("azure_llm_2023_code.csv");
  if (IsSkipped()) return;
  const auto all = statistics();
  EXPECT_EQ(all.requests, 8'819u);
  EXPECT_EQ(all.input.max, 7'437);
  EXPECT_EQ(all.output.max, 1'899);
  EXPECT_EQ(all.duration_us, 3'435'948'056);
  EXPECT_EQ(all.block_references, 0u);
  EXPECT_EQ(validation().errors() + validation().warnings(), 0u);
}

}  // namespace

}  // namespace kvo::traces
