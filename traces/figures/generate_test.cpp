#include "traces/figures/generate.hpp"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "traces/figures/statistics.hpp"
#include "traces/figures/validate.hpp"
#include "traces/formats/mooncake.hpp"
#include "traces/io/test_files.hpp"

namespace kvo::traces {

namespace {

using test::error_text;

TraceStatistics statistics_of(const std::vector<Request>& requests) {
  return test::result_of(StatisticsCounter(), requests);
}

TEST(Generate, GivesTheSameForTheSameSeed) {
  EXPECT_EQ(generate({.seed = 5}).value(), generate({.seed = 5}).value());
  EXPECT_NE(generate({.seed = 5}).value(), generate({.seed = 6}).value());
}

TEST(Generate, LongerTraceBeginsLikeAShorterOne) {
  const auto shorter = generate({.requests = 50}).value();
  auto longer = generate({.requests = 80}).value();
  longer.resize(50);
  EXPECT_EQ(longer, shorter);
}

TEST(Generate, MakesSoundTracesForAnyOptions) {
  const std::vector<GenerateOptions> all = {
      {},
      {.seed = 2, .requests = 0},
      {.seed = 3, .requests = 500, .block_size = 1},
      {.seed = 4,
       .requests = 500,
       .mean_turn_tokens = 1,
       .mean_output_tokens = 1,
       .max_input_tokens = 1},
      {.seed = 5, .requests = 500, .system_prompts = 0},
      {.seed = 6, .requests = 500, .continued_percent = 100, .max_input_tokens = 5000},
      {.seed = 7, .requests = 500, .continued_percent = 0},
      {.seed = 8, .requests = 500, .requests_per_second = 1e6, .block_size = 1 << 20},
  };
  for (const auto& options : all) {
    const auto requests = generate(options).value();
    EXPECT_EQ(requests.size(), static_cast<std::size_t>(options.requests));
    Validator validator({.block_size = options.block_size});
    for (const auto& request : requests) {
      validator.add(request);
      EXPECT_LE(request.input_tokens, options.max_input_tokens);
    }
    const auto found = validator.result();
    EXPECT_EQ(found.errors() + found.warnings(), 0u)
        << "seed " << options.seed << ": " << text("t", found.findings.at(0));
  }
}

TEST(Generate, KeepsToItsMeans) {
  const auto all = statistics_of(generate({.requests = 20'000,
                                           .requests_per_second = 4,
                                           .mean_turn_tokens = 900,
                                           .mean_output_tokens = 300,
                                           .continued_percent = 0,
                                           .system_prompts = 0,
                                           .max_input_tokens = 1 << 24})
                                     .value());
  EXPECT_NEAR(all.input.mean, 900, 40);
  EXPECT_NEAR(all.output.mean, 300, 15);
  EXPECT_NEAR(static_cast<double>(all.duration_us), 5000e6, 200e6);
}

TEST(Generate, SharesMoreWithMoreLaterTurns) {
  const auto share = [](std::int64_t continued_percent, std::int64_t system_prompts) {
    return statistics_of(generate({.requests = 3000,
                                   .continued_percent = continued_percent,
                                   .system_prompts = system_prompts})
                             .value())
        .prefix_hit_share();
  };
  EXPECT_EQ(share(0, 0), 0);
  EXPECT_GT(share(0, 4), 0.1);
  EXPECT_GT(share(60, 0), 0.3);
  EXPECT_GT(share(90, 4), share(50, 4));
}

TEST(Generate, RefusesOptionsOutOfRange) {
  EXPECT_EQ(error_text(generate({.requests = -1})), "requests: -1: not 0 to 100000000");
  EXPECT_EQ(error_text(generate({.requests_per_second = 0})),
            "requests_per_second: 0: not 0.001 to 1000000");
  EXPECT_EQ(error_text(generate({.requests_per_second = std::numeric_limits<double>::quiet_NaN()})),
            "requests_per_second: nan: not 0.001 to 1000000");
  EXPECT_EQ(error_text(generate({.continued_percent = 101})),
            "continued_percent: 101: not 0 to 100");
  EXPECT_EQ(error_text(generate({.block_size = 0})), "block_size: 0: not 1 to 1048576");
}

TEST(Generate, RefusesMoreBlocksThanALineOrTheMemoryHolds) {
  EXPECT_EQ(error_text(generate({.max_input_tokens = 1 << 24, .block_size = 1})),
            "max_input_tokens: 16777216: more than 1048576 blocks of --block-size 1");
  EXPECT_EQ(error_text(generate(
                {.system_prompts = 1 << 20, .mean_system_tokens = 1 << 20, .block_size = 512})),
            "system_prompts: 1048576: more than 16777216 blocks in all, of --mean-system-tokens "
            "1048576");
}

TEST(Generate, EndsWithTheFirstErrorOfWhoTakes) {
  int taken = 0;
  const auto made = generate_each({}, [&](const Request& /*request*/) -> TraceResult<void> {
    if (++taken == 3) return error_at({"f"}, {}, {}, "full");
    return {};
  });
  EXPECT_EQ(error_text(made), "f: full");
  EXPECT_EQ(taken, 3);
}

TEST(Generate, WrittenTraceReadsBackAlike) {
  const auto requests = generate({.requests = 100}).value();
  std::string lines;
  for (const Request& request : requests) lines += to_mooncake_line(request) + '\n';
  EXPECT_EQ(test::requests_in(lines), requests);
}

}  // namespace

}  // namespace kvo::traces
