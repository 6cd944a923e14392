// What holds for every lowering, and the states to which the embedded trace leads the caches. Tests
// of the contracts' lowerings share the functions of driven.hpp.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "properties/replay/driven.hpp"
#include "traces/figures/generate.hpp"
#include "traces/formats/formats.hpp"
#include "traces/formats/sample.hpp"

namespace kvo::replay {

Request request(std::int64_t input, std::int64_t output, std::vector<std::uint64_t> ids) {
  Request made;
  made.input_tokens = input;
  made.output_tokens = output;
  made.block_ids = std::move(ids);
  return made;
}

const std::vector<Request>& chats() {
  static const auto kRequests = traces::generate({.requests = 120,
                                                  .mean_turn_tokens = 20,
                                                  .mean_output_tokens = 8,
                                                  .system_prompts = 3,
                                                  .mean_system_tokens = 30,
                                                  .block_size = 8})
                                    .value();
  return kRequests;
}

const std::vector<Request>& sample() {
  static const auto kRequests = [] {
    auto reader = traces::open_trace(
        traces::TextSource::in_memory(std::string(traces::kSampleName), traces::sample_trace()),
        "");
    return traces::read_all(**reader).value();
  }();
  return kRequests;
}

const Lowering& lowering_of(std::string_view full_name) {
  return *std::ranges::find(contracts().lowerings(), full_name, &Lowering::full_name);
}

std::string test_name(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == '.' || c == ' '; }, '_');
  return name;
}

std::vector<std::string> Driven::lines(std::string (*text)(const Op& op)) const {
  std::vector<std::string> all;
  for (const Op& op : ops)
    if (std::string line = text(op); !line.empty()) all.push_back(std::move(line));
  return all;
}

Driven driven(std::string_view full_name, LoweringInput input, Profile profile) {
  const Lowering& lowering = lowering_of(full_name);
  input.profile = profile;
  Setup setup = lowering.setup(input);
  setup.profile = profile;
  const auto session = std::move(*contracts().reference_of(*lowering.kind).open(setup));
  const auto stream = lowering.lower(input);
  Probe probe;
  Driven all;
  while (const auto op = stream->next()) {
    all.ops.push_back(*op);
    all.observed.push_back(session->apply(*op, probe));
    if (const Observation* want = stream->expected()) {
      ++all.expectations;
      EXPECT_EQ(observation_difference(*want, all.observed.back()), std::nullopt) << op_text(*op);
    }
    stream->saw(*op, all.observed.back(), all.labels);
  }
  for (const Figure& figure : stream->figures()) {
    const std::size_t colon = figure.name.find(": ");
    all.figures[figure.name.substr(colon == std::string::npos ? 0 : colon + 2)] = figure.value;
  }
  return all;
}

std::set<std::string> labels_of_sample(const Lowering& lowering, const ReplayOptions& options) {
  const Replay replay(
      contracts(), sample(),
      {{.kind = lowering.kind, .reference = &contracts().reference_of(*lowering.kind)}}, options);
  std::set<std::string> reached;
  for (std::uint64_t index = 0; index < replay.cases(); ++index) {
    const CasePlan plan = replay.plan(index);
    if (!plan.name.starts_with(lowering.name)) continue;
    const CaseResult result = run_case(plan, {.attempts = 0});
    EXPECT_EQ(result.subjects.front().verdict.text(), "agrees") << plan.name;
    reached.insert(result.labels.begin(), result.labels.end());
  }
  return reached;
}

bool caught_alone(std::string_view mutant, const ReplayOptions& options) {
  const Subject* subject = contracts().find_subject(mutant);
  if (subject == nullptr) return false;
  const Replay replay(contracts(), chats(), {{.kind = subject->kind, .subjects = {subject}}},
                      options);
  for (std::uint64_t index = 0; index < replay.cases(); ++index)
    if (run_case(replay.plan(index), {.attempts = 0}).subjects.front().verdict.failed())
      return true;
  return false;
}

namespace {

using testing::IsSupersetOf;
using testing::Values;
using testing::ValuesIn;

std::vector<std::string> names_of_lowerings() {
  std::vector<std::string> names;
  for (const Lowering& one : contracts().lowerings()) names.push_back(one.full_name());
  return names;
}

class EachLowering : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Each, EachLowering, ValuesIn(names_of_lowerings()),
                         [](const auto& one) { return test_name(one.param); });

TEST_P(EachLowering, TheSameRequestsGiveTheSameOperations) {
  const LoweringInput input{.requests = chats(),
                            .schedule = {.scale = 2},
                            .policy = {.block_size = 4, .pool_percent = 40},
                            .seed = 4};
  const Driven once = driven(GetParam(), input);
  const Driven again = driven(GetParam(), input);
  EXPECT_GT(once.ops.size(), chats().size());
  ASSERT_EQ(once.ops.size(), again.ops.size());
  for (std::size_t i = 0; i < once.ops.size(); ++i)
    ASSERT_EQ(op_text(once.ops[i]), op_text(again.ops[i]));
}

/// A lowering, how often and how the sample is replayed, and labels that its cases reach.
struct Reached {
  std::string name;
  std::uint64_t seeds;
  bool varied;
  std::int64_t scale;  ///< 0: the default
  std::set<std::string_view> labels;

  friend void PrintTo(const Reached& one, std::ostream* out) {  // NOLINT: GoogleTest's name
    *out << one.name;
  }
};

class SampleOf : public testing::TestWithParam<Reached> {};

TEST_P(SampleOf, TheSampleReachesEveryState) {
  const Reached& want = GetParam();
  std::set<std::string> reached;
  for (std::uint64_t seed = 1; seed <= want.seeds; ++seed)
    reached.merge(labels_of_sample(lowering_of(want.name),
                                   {.varied = want.varied ? varying_members() : Members(),
                                    .scale = want.scale,
                                    .seed = seed}));
  EXPECT_THAT(reached, IsSupersetOf(want.labels));
}

const std::set<std::string_view> kOfPrefix{"prompt hit in part",
                                           "places of another request taken",
                                           "request not let in for want of room",
                                           "running request preempted",
                                           "preempted request hit what it had computed",
                                           "request cancelled amid its prompt"};
const std::set<std::string_view> kOfCells{"cache full, and room made", "context shifted",
                                          "prefix copied from another sequence",
                                          "prefix of the slot kept", kPreempted};
const std::set<std::string_view> kOfTries{
    "beginning of a prompt restored", "known beginning not restored in full",
    "layer restored from a snapshot", "node evicted",
    "prompt kept for a user",         "session closed amid its prompt"};

std::set<std::string_view> with(std::set<std::string_view> labels, std::string_view label) {
  labels.insert(label);
  return labels;
}

INSTANTIATE_TEST_SUITE_P(
    Each, SampleOf,
    Values(Reached{"prefix.blocks full", 8, true, 32, kOfPrefix},
           Reached{"prefix.blocks window", 8, true, 32, kOfPrefix},
           Reached{"prefix.radix tokens", 8, true, 32, kOfPrefix},
           Reached{"prefix.radix pages", 8, true, 32, kOfPrefix},
           Reached{"cells.kv", 2, true, 0, kOfCells}, Reached{"cells.iswa", 2, true, 0, kOfCells},
           Reached{"snapshot.kv",
                   1,
                   false,
                   0,
                   {"draft taken back without a snapshot", "sequence put away and brought back",
                    "snapshot split", "snapshots merged"}},
           Reached{"snapshot.rotating",
                   1,
                   false,
                   0,
                   {"draft taken back by a snapshot", "draft taken back without a snapshot",
                    "ring full", "sequence put away and brought back"}},
           Reached{"snapshot.recurrent",
                   1,
                   false,
                   0,
                   {"draft taken back by a snapshot", "sequence put away and brought back"}},
           Reached{"snapshot.trie kv", 1, false, 0, kOfTries},
           Reached{"snapshot.trie mixed", 1, false, 0,
                   with(kOfTries, "snapshot taken where it was asked for")}),
    [](const auto& one) { return test_name(one.param.name); });

}  // namespace
}  // namespace kvo::replay
