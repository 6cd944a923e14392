#include "tools/probe/serve/server.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/campaign/day.hpp"
#include "properties/contracts.hpp"
#include "reference/probe/rows.hpp"
#include "tools/commands/usage.hpp"
#include "tools/probe/check.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

const Subject& subject_of(const std::string& name) {
  const Subject* found = contracts().find_subject(name);
  if (found == nullptr) throw std::invalid_argument(name);
  return *found;
}

ProbeReport report_on(const ServerOptions& engine, ProbeOptions options) {
  const auto server = std::make_shared<ProbeServer>(engine);
  options.transport = [server](const HttpRequest& request) {
    return server->answer(request.path, request.body);
  };
  return probe_engine(options);
}

// One request at a time, so that the run is the same each time.
ProbeOptions short_run(std::size_t requests) {
  ProbeOptions options;
  options.requests = requests;
  options.limits = {.longest = 96, .tokens = 16, .at_once = 1};
  options.shrink_attempts = 5;
  return options;
}

// ---- Faults ----

class ServedFault : public TestWithDay<ServerFault> {};

// docs/probe.md, "probe serve".
TEST_P(ServedFault, IsFoundIfItDoesHarm) {
  const ServerFault& fault = GetParam();
  const bool seldom = fault.one_head || fault.name == "row_heads_swapped";
  const ProbeReport report =
      report_on({.cache = &subject_of("prefix.blocks@optimized"), .fault = &fault, .rows = 512},
                short_run(seldom ? 256 : 64));
  EXPECT_EQ(report.failed_requests, 0U) << report.failure;
  EXPECT_GE(report.requests, 64U);
  if (fault.harm == Harm::kNone || fault.harm == Harm::kHarmless) {
    EXPECT_EQ(report.wrong_requests, 0U) << fault.name;
    return;
  }
  ASSERT_FALSE(report.wrong.empty());
  for (const WrongAnswer& wrong : report.wrong) {
    const Cause cause = fault.harm == Harm::kCache        ? Cause::kMemory
                        : fault.harm == Harm::kArithmetic ? Cause::kArithmetic
                                                          : Cause::kNeither;
    EXPECT_EQ(wrong.cause, cause) << wrong.evidence;
  }
  if (fault.harm != Harm::kCache) EXPECT_TRUE(report.shrunk.empty());
  // Which rows a fault hits depends on how many are reused, so not every plan repeats it.
  if (fault.harm == Harm::kCache && 4 * report.wrong_requests > report.requests)
    EXPECT_FALSE(report.shrunk.empty());
}

INSTANTIATE_TEST_SUITE_P(Each, ServedFault,
                         testing::ValuesIn(server_faults().begin(), server_faults().end()),
                         [](const auto& each) { return std::string(each.param.name); });

// ---- Caches without a fault ----

class ServedSubject : public testing::TestWithParam<std::string> {};

// More requests at once than there is space for: they wait, and idle texts are dropped.
TEST_P(ServedSubject, GivesNoFalseAlarm) {
  ProbeOptions options = short_run(100);
  options.limits = {.longest = 200, .tokens = 12, .at_once = 6};
  const ProbeReport report = report_on({.cache = &subject_of(GetParam()), .rows = 512}, options);
  EXPECT_EQ(report.wrong_requests + report.failed_requests, 0U) << report.failure;
  EXPECT_GE(report.requests, 100U);
}

std::string test_name(const testing::TestParamInfo<std::string>& each) {
  std::string name;
  for (const char c : each.param) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Each, ServedSubject,
                         testing::Values("prefix.blocks@reference", "prefix.blocks@optimized",
                                         "positional.causal@reference",
                                         "positional.causal@optimized", "views.paged@reference",
                                         "views.paged@optimized", "cells.kv@reference",
                                         "cells.kv@optimized"),
                         test_name);

// ---- Caches with a fault ----

class ServedMutant : public TestWithDay<std::string> {};

TEST_P(ServedMutant, IsFound) {
  ProbeOptions options = short_run(64);
  options.limits.longest = 200;
  options.limits.at_once = 4;
  const ProbeReport report = report_on({.cache = &subject_of(GetParam()), .rows = 512}, options);
  EXPECT_GT(report.wrong_requests, 0U);
}

INSTANTIATE_TEST_SUITE_P(Each, ServedMutant,
                         testing::Values("views.paged@mutant:truncate_drops_the_cut_block",
                                         "views.paged@mutant:chunk_sees_itself_only",
                                         "views.paged@mutant:copies_one_row_less",
                                         "views.paged@mutant:packed_rows_survive",
                                         "views.paged@mutant:short_view_stays_short",
                                         "cells.kv@mutant:removed_by_cell",
                                         "positional.causal@mutant:one_owner_sees",
                                         "positional.causal@mutant:remove_by_cell",
                                         "positional.causal@mutant:shifts_first_sequence_only",
                                         "prefix.blocks@mutant:key_stays_in_index"),
                         test_name);

// ---- Windows ----

std::string request_for(const ProbeTokens& prompt, std::size_t tokens) {
  return json::serialize(
      json::object{{"prompt", json::value_from(prompt)}, {"max_tokens", tokens}});
}

// Wrong answers to texts that share their first half, with a token that begins one in each quarter
// of the window.
std::size_t wrong_in_window(const std::string& subject) {
  constexpr std::size_t kWindow = 64;
  const probe::Tables tables({.window = kWindow});
  ProbeServer server({.cache = &subject_of(subject), .rows = 1024, .shape = tables.shape()});
  traces::Random random(1);
  ProbeTokens prompt{probe::kBegin};
  std::size_t wrong = 0;
  for (int round = 0; round < 24; ++round) {
    prompt.resize(1 + prompt.size() / 2);
    const std::size_t size = 120 + random.below(80);
    while (prompt.size() < size)
      prompt.push_back(prompt.size() % (kWindow / 4) == 0
                           ? probe::kSink
                           : probe::kFirstValue + probe::kValues * 7 +
                                 static_cast<probe::Token>(random.below(probe::kValues)));
    probe::Rows rows(tables);
    rows.extend(prompt);
    const ProbeTokens want = rows.generate(8);
    const HttpAnswer given = server.answer("/v1/completions", request_for(prompt, want.size()));
    EXPECT_EQ(given.status, 200U) << given.body;
    wrong += given.body.find('"' + probe_text(want) + '"') == given.body.npos ? 1 : 0;
  }
  return wrong;
}

TEST_P(ServedSubject, ServesAModelWithAWindow) {
  EXPECT_EQ(wrong_in_window(GetParam()), 0U);
}

TEST(ServedMutantOfWindow, IsFound) {
  EXPECT_GT(wrong_in_window("prefix.blocks@mutant:window_one_short"), 0U);
}

// ---- Bad requests, and caches that refuse ----

TEST(ProbeServer, SaysWhatIsWrong) {
  ProbeServer server({.cache = &subject_of("prefix.blocks@reference"), .rows = 256});
  const auto refused = [&](const std::string& path, const std::string& body, unsigned status,
                           const char* why) {
    const HttpAnswer given = server.answer(path, body);
    EXPECT_EQ(given.status, status) << given.body;
    EXPECT_THAT(given.body, HasSubstr(why));
  };
  refused("/v1/chat", "{}", 404, "no such path");
  refused("/v1/completions", "[", 400, "no JSON object");
  refused("/v1/completions", "{}", 400, "prompt: tokens or a text");
  refused("/v1/completions", R"({"prompt":[]})", 400, "prompt: tokens or a text");
  refused("/v1/completions", R"({"prompt":[4416]})", 400, "prompt: tokens or a text");
  refused("/v1/completions", R"({"prompt":[1],"max_tokens":257})", 400, "max_tokens: 0 to 256");
  refused("/v1/completions", request_for(ProbeTokens(250, 300), 1), 400,
          "prompt: 272 rows are needed, the cache has 256");
  EXPECT_EQ(server.answer("/v1/completions", request_for({1}, 0)).status, 200U);
  EXPECT_EQ(server.answer("/v1/completions", request_for({300}, 4)).status, 200U);
}

TEST(ProbeServer, ReportsAnErrorOfTheCache) {
  const ProbeReport report = report_on(
      {.cache = &subject_of("positional.causal@mutant:given_back_uncounted"), .rows = 512},
      short_run(64));
  EXPECT_GT(report.failed_requests, 0U);
  EXPECT_THAT(report.failure, HasSubstr("status 500: {\"error\":\"cache: full"));
}

TEST(ProbeServer, ServesFourKinds) {
  try {
    const ProbeServer server({.cache = &subject_of("layered.vector@reference")});
    ADD_FAILURE() << "it was served";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("caches that can be served are: prefix.blocks, "
                                        "positional.causal, views.paged, cells.kv"));
  }
}

// ---- Cells as elements ----

TEST(ServedCell, SurvivesAShift) {
  const ServedCell cell{.position = 20, .key = -1, .value = {32, -7}};
  std::array<float, kCellElements> key{};
  std::array<float, kCellElements> value{};
  write_cell(cell, key, value);
  EXPECT_EQ(cell_of(key[0], key[1], value), cell);
  ServedCell moved = cell;
  moved.position = 4;
  EXPECT_EQ(cell_of(key[0] - 16, key[1] - 16, value), moved);
  EXPECT_EQ(cell_of(0, 0, {}), ServedCell());
  EXPECT_EQ(cell_of(NAN, 3, {NAN, 1e9F}), (ServedCell{.position = 3}));
  EXPECT_EQ(cell_of(7, -1, {}), ServedCell());
}

}  // namespace
}  // namespace kvo::tools
