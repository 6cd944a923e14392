// Lowerings: what holds for all of them, the states to which the embedded trace leads their caches,
// and transcripts of what they emit (properties/replay/lowerings.txt).
#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/algorithm/string/join.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "properties/replay/engine.hpp"
#include "properties/replay/prompt_tokens.hpp"
#include "properties/replay/replay.hpp"
#include "reference/contract/describe/json.hpp"
#include "traces/figures/generate.hpp"
#include "traces/figures/statistics.hpp"
#include "traces/formats/formats.hpp"
#include "traces/formats/sample.hpp"

namespace kvo::replay {
namespace {

using testing::ElementsAreArray;
using testing::IsSupersetOf;
using testing::Values;
using testing::ValuesIn;

/// Conversations in blocks of eight tokens.
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

/// The embedded trace.
const std::vector<Request>& sample() {
  static const auto kRequests = [] {
    auto reader = traces::open_trace(
        traces::TextSource::in_memory(std::string(traces::kSampleName), traces::sample_trace()),
        "");
    return traces::read_all(**reader).value();
  }();
  return kRequests;
}

/// The lowering with that full name. Requires  there is one.
const Lowering& lowering_of(std::string_view full_name) {
  return *std::ranges::find(contracts().lowerings(), full_name, &Lowering::full_name);
}

/// A name as part of the name of a test.
std::string test_name(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

/// A case of a lowering on the reference of its kind.
struct Driven {
  std::vector<std::string> lines = {};  ///< the operations
  Labels labels = {};
  std::map<std::string, std::int64_t> figures = {};  ///< without the lowering's name
};

/// "update cache=0 layer=1 k=1x2x8": members that are not null, tensors by shape, long lists by
/// size.
std::string line_of(const Op& op) {
  constexpr std::size_t kLongest = 30;
  std::string line(op.kind().name);
  for (const auto& [name, value] : write_record(op.arguments())) {
    std::string text = boost::json::serialize(value);
    if (value.is_null()) continue;
    if (const auto* tensor = value.if_object(); tensor != nullptr && tensor->contains("shape"))
      text = boost::json::serialize(tensor->at("shape"));
    else if (value.is_array() && text.size() > kLongest)
      text = "x" + std::to_string(value.as_array().size());
    line += " " + std::string(name) + "=" + text;
  }
  return line;
}

/// Runs a case. A test fails where an observation is not as the lowering expects. Operations that
/// `fails` is true for fail without the cache.
Driven driven(
    std::string_view full_name, LoweringInput input, Profile profile = Profile::kDocumented,
    const std::function<bool(const std::string& line)>& fails = [](const auto&) { return false; }) {
  const Lowering& lowering = lowering_of(full_name);
  input.profile = profile;
  Setup setup = lowering.setup(input);
  setup.profile = profile;
  const auto session = *contracts().reference_of(*lowering.kind).open(setup);
  const auto stream = lowering.lower(input);
  Probe probe;
  Driven all;
  while (const auto op = stream->next()) {
    const std::string& line = all.lines.emplace_back(line_of(*op));
    Observation seen;
    if (fails(line)) {
      seen.error = fail(Code::kExhausted);
    } else {
      seen = session->apply(*op, probe);
      if (const Observation* want = stream->expected()) {
        EXPECT_EQ(observation_difference(*want, seen), std::nullopt) << op_text(*op);
      }
    }
    stream->observe(*op, seen, all.labels);
  }
  for (const Figure& figure : stream->figures()) {
    const std::size_t colon = figure.name.find(": ");
    all.figures[figure.name.substr(colon == std::string::npos ? 0 : colon + 2)] = figure.value;
  }
  return all;
}

/// The labels of all cases that a replay of the sample has for a lowering.
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
  EXPECT_GT(once.lines.size(), chats().size());
  EXPECT_THAT(driven(GetParam(), input).lines, ElementsAreArray(once.lines));
}

// Alone, a faulty cache is its own judge: only the expectations of the lowering can fail.
class FaultyJudge : public testing::TestWithParam<const char*> {};

TEST_P(FaultyJudge, IsCaught) {
  const Subject* subject = contracts().find_subject(GetParam());
  ASSERT_NE(subject, nullptr);
  const Replay replay(contracts(), chats(), {{.kind = subject->kind, .subjects = {subject}}},
                      {.schedule = {.max_running = 4, .chunk_tokens = 16, .step_us = 200'000},
                       .lowering = {.pool_percent = 20},
                       .scale = 1,
                       .seed = 4});
  bool failed = false;
  for (std::uint64_t index = 0; index < replay.cases() && !failed; ++index)
    failed = run_case(replay.plan(index), {.attempts = 0}).subjects.front().verdict.failed();
  EXPECT_TRUE(failed);
}

INSTANTIATE_TEST_SUITE_P(
    Each, FaultyJudge,
    Values("cells.kv@mutant:removed_by_cell", "layered.vector@mutant:clear_keeps_rows",
           "positional.causal@mutant:mask_starts_at_batch",
           "positional.causal@mutant:one_owner_sees", "positional.causal@mutant:remove_by_cell",
           "positional.swa@mutant:window_one_short", "positional.swa_mem@mutant:evicts_to_chunk",
           "positional.chunked@mutant:chunk_starts_late", "prefix.blocks@mutant:pinned_stays_free",
           "prefix.blocks@mutant:key_stays_in_index", "provider.paged@mutant:values_channel_minor",
           "provider.paged@mutant:table_taken_for_run",
           "provider.tensor@mutant:prefill_keeps_counter", "provider.device@mutant:heads_forgotten",
           "snapshot.kv@mutant:merge_forgets_the_parent",
           "snapshot.kv@mutant:snapshot_ignores_from", "snapshot.kv@mutant:split_shares_a_token",
           "snapshot.recurrent@mutant:one_side_restored",
           "snapshot.recurrent@mutant:offset_not_restored"),
    [](const auto& one) { return test_name(one.param); });

// ---- What caches find of prompts ----

/// A lowering with figures of hits, and pools that evict nothing or much.
struct Finding {
  const char* name;
  const char* hit;     ///< the figure; "NAME at best" is its bound
  std::int64_t ample;  ///< percent
  std::int64_t small;  ///< percent
  std::uint64_t seed;  ///< of pools in proportion to all requests
};

class Finds : public testing::TestWithParam<Finding> {
 protected:
  static Driven of(const std::vector<Request>& requests, std::int64_t pool_percent,
                   Profile profile = Profile::kDocumented, const SchedulePolicy& schedule = {}) {
    return driven(GetParam().name,
                  {.requests = requests,
                   .schedule = schedule,
                   .policy = {.block_size = 4, .pool_percent = pool_percent},
                   .seed = GetParam().seed},
                  profile);
  }
  const std::string hit_ = GetParam().hit;
  const std::string best_ = hit_ + " at best";
};

TEST_P(Finds, LessInASmallPool) {
  for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
    Driven open = of(chats(), GetParam().ample, profile);
    Driven seen = of(chats(), GetParam().small, profile);
    EXPECT_GT(seen.figures["evictions"], 10);
    EXPECT_EQ(open.figures["evictions"], 0);
    EXPECT_GT(seen.figures[hit_], 0);
    EXPECT_LT(seen.figures[hit_], open.figures[hit_]);
    EXPECT_LE(open.figures[hit_], open.figures[best_]);
    EXPECT_EQ(seen.figures[best_], open.figures[best_])
        << "what is known does not depend on what was evicted";
  }
}

TEST_P(Finds, NothingWithoutBlockIds) {
  std::vector<Request> all = chats();
  for (Request& one : all) one.block_ids.clear();
  Driven seen = of(all, GetParam().ample);
  EXPECT_EQ(seen.figures[hit_], 0);
  EXPECT_EQ(seen.figures[best_], 0);
}

INSTANTIATE_TEST_SUITE_P(Each, Finds,
                         Values(Finding{"prefix.blocks full", "prompt tokens hit", 200, 10, 5},
                                Finding{"prefix.blocks window", "prompt tokens hit", 200, 10, 4},
                                Finding{"prefix.radix tokens", "prompt tokens hit", 200, 10, 5},
                                Finding{"prefix.radix pages", "prompt tokens hit", 200, 10, 4},
                                Finding{"snapshot.trie kv", "tokens restored", 1'000'000, 20, 1},
                                Finding{"snapshot.trie mixed", "tokens restored", 1'000'000, 20,
                                        1}),
                         [](const auto& one) { return test_name(one.param.name); });

// Blocks, pages and requests that run at a time hide a part from the others.
using FindsAll = Finds;
TEST_P(FindsAll, OneByOneWithoutALimit) {
  Driven seen = of(chats(), GetParam().ample, Profile::kDocumented,
                   {.max_running = 1, .draft_every = 0, .cancel_every = 0});
  EXPECT_GT(seen.figures[hit_], seen.figures["prompt tokens"] / 4);
  EXPECT_EQ(seen.figures[hit_], seen.figures[best_]);
}
INSTANTIATE_TEST_SUITE_P(Each, FindsAll,
                         Values(Finding{"prefix.radix tokens", "prompt tokens hit", 200, 10, 5},
                                Finding{"snapshot.trie kv", "tokens restored", 1'000'000, 20, 1}),
                         [](const auto& one) { return test_name(one.param.name); });

TEST(PrefixHits, AtBestIsWhatTheTraceSaysHoweverItIsCut) {
  traces::StatisticsCounter counter;
  for (const Request& one : chats()) counter.add(one);
  const auto wanted = counter.result();
  ASSERT_GT(wanted.prefix_hits, 0U);
  const CacheKind& kind = *lowering_of("prefix.blocks full").kind;
  for (const std::int64_t per_case : {3, 1000}) {
    const Replay replay(contracts(), chats(),
                        {{.kind = &kind, .reference = &contracts().reference_of(kind)}},
                        {.lowering = {.requests_per_case = per_case}, .scale = 1});
    std::map<std::string, std::int64_t> sums;
    for (std::uint64_t index = 0; index < replay.cases(); ++index)
      for (const Figure& figure : run_case(replay.plan(index), {.attempts = 0}).figures)
        sums[figure.name] += figure.value;
    for (const std::string name : {"full: ", "window: "}) {
      EXPECT_EQ(sums[name + "prompt blocks"], wanted.block_references) << per_case;
      EXPECT_EQ(sums[name + "prompt blocks hit at best"], wanted.prefix_hits) << per_case;
    }
  }
}

TEST(PromptTokens, KnownIsTheLongestCommonBeginning) {
  PromptTokens prompts(chats(), 1);
  std::vector<Tokens> learnt;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < chats().size(); ++i) {
    const Tokens tokens = prompts.prompt(chats()[i]);
    std::int64_t longest = 0;
    for (const Tokens& other : learnt)
      longest = std::max(longest, std::ranges::mismatch(tokens, other).in1 - tokens.begin());
    EXPECT_EQ(prompts.known(chats()[i]), longest) << i;
    // Every third prompt is learnt in part.
    const auto part = static_cast<std::int64_t>(i % 3 == 2 ? tokens.size() / 2 : tokens.size());
    prompts.learn(chats()[i], part);
    learnt.emplace_back(tokens.begin(), tokens.begin() + part);
    sum += longest;
  }
  EXPECT_GT(sum, 0);
}

TEST(PromptTokens, ScaledPromptsBeginAlikeAsFarAsTheirIdsDo) {
  const std::vector<Request> all{{.input_tokens = 40, .block_ids = {7, 8, 9}},
                                 {.input_tokens = 20, .block_ids = {7, 5}},
                                 {.input_tokens = 16},
                                 {.input_tokens = 16},
                                 {.input_tokens = 32, .block_ids = {7, 8}}};
  for (const std::int64_t scale : {1, 4, 64}) {
    PromptTokens prompts(all, scale);
    const Tokens first = prompts.prompt(all[0]);
    const Tokens second = prompts.prompt(all[1]);
    EXPECT_EQ(std::ssize(first), scaled(40, scale));
    EXPECT_EQ(std::ranges::mismatch(first, second).in2 - second.begin(),
              std::min(scaled(16, scale), std::ssize(second)));
    EXPECT_NE(prompts.prompt(all[2]).front(), prompts.prompt(all[3]).front()) << "without ids";
  }
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
           Reached{"dynamic.dynamic", 1, false, 0, {"draft taken back by a crop"}},
           Reached{"dynamic.dynamic sliding",
                   1,
                   false,
                   0,
                   {"draft taken back by a crop", "window passed"}},
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
           Reached{"mlx_lm.kv", 1, false, 0, {"draft trimmed"}},
           Reached{"mlx_lm.rotating",
                   1,
                   false,
                   0,
                   {"draft taken back by a copy", "draft trimmed", "ring full"}},
           Reached{"snapshot.trie kv", 1, false, 0, kOfTries},
           Reached{"snapshot.trie mixed", 1, false, 0,
                   with(kOfTries, "snapshot taken where it was asked for")}),
    [](const auto& one) { return test_name(one.param.name); });

// ---- Transcripts ----

/// A case of the file: what the lowering gets, and what it must emit.
struct Transcript {
  std::string name;
  std::string lowering;
  LoweringInput input = {};
  std::vector<Request> requests = {};
  std::vector<std::string> fails = {};  ///< each: the first operation that begins so fails
  std::vector<std::string> only = {};   ///< names of the operations that are shown; none: all
  std::vector<std::string> reaches = {};
  std::map<std::string, std::int64_t> figures = {};
  std::vector<std::string> lines = {};

  friend void PrintTo(const Transcript& one, std::ostream* out) {  // NOLINT: GoogleTest's name
    *out << one.name;
  }
};

// Moves the members of the policy that the JSON object has into it.
template <class Policy>
void take_members(boost::json::object& from, Policy& policy) {
  boost::json::object all = write_json(policy).as_object();
  for (auto& [name, value] : all) {
    if (!from.contains(name)) continue;
    value = from.at(name);
    from.erase(name);
  }
  JsonFault fault;
  EXPECT_TRUE(read_json(all, policy, fault)) << "lowerings.txt: " << fault.text();
}

std::vector<std::string> words_of(const std::string& text, const std::string& separator) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  return words;
}

void read_line(const std::string& word, const std::string& rest, Transcript& to) {
  const std::size_t last = rest.rfind(' ') + 1;
  if (word == "with") {
    boost::json::object members = boost::json::parse(rest).as_object();
    take_members(members, to.input.schedule);
    take_members(members, to.input.policy);
    if (const auto* seed = members.if_contains("seed")) {
      to.input.seed = static_cast<std::uint64_t>(seed->as_int64());
      members.erase("seed");
    }
    EXPECT_TRUE(members.empty()) << "lowerings.txt: " << boost::json::serialize(members);
  } else if (word == "request") {
    std::istringstream numbers(rest);
    Request& made = to.requests.emplace_back();
    numbers >> made.arrival_us >> made.input_tokens >> made.output_tokens;
    for (std::uint64_t id = 0; numbers >> id;) made.block_ids.push_back(id);
  } else if (word == "requests") {
    to.requests = chats();
  } else if (word == "fails") {
    to.fails.push_back(rest);
  } else if (word == "only") {
    to.only = words_of(rest, " ");
  } else if (word == "reaches") {
    to.reaches.push_back(rest);
  } else if (word == "figure") {
    to.figures[rest.substr(0, last - 1)] = std::stoll(rest.substr(last));
  } else if (word == ">") {
    for (std::string& line : words_of(rest, "; ")) to.lines.push_back(std::move(line));
  } else {
    ADD_FAILURE() << "lowerings.txt has a line that begins with " << word;
  }
}

std::vector<Transcript> transcripts() {
  std::vector<Transcript> all;
  std::ifstream file(KVO_LOWERINGS);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = line.find(' ');
    const std::string word = line.substr(0, space);
    const std::string rest = line.substr(space + 1);
    if (word == "case")
      all.push_back({.name = rest, .lowering = rest.substr(0, rest.find(':'))});
    else
      read_line(word, rest, all.back());
  }
  return all;
}

class TranscriptOf : public testing::TestWithParam<Transcript> {};

TEST_P(TranscriptOf, IsWhatTheLoweringEmits) {
  const Transcript& want = GetParam();
  LoweringInput input = want.input;
  input.requests = want.requests;
  std::vector<std::string> fails = want.fails;
  Driven seen = driven(want.lowering, input, Profile::kDocumented, [&](const std::string& line) {
    const auto found = std::ranges::find_if(
        fails, [&](const std::string& begin) { return line.starts_with(begin); });
    const bool due = found != fails.end();
    if (due) fails.erase(found);
    return due;
  });
  EXPECT_THAT(fails, testing::IsEmpty()) << "no such operation";
  std::erase_if(seen.lines, [&](const std::string& line) {
    return !want.only.empty() &&
           std::ranges::find(want.only, line.substr(0, line.find(' '))) == want.only.end();
  });
  if (!want.lines.empty()) {
    EXPECT_EQ(seen.lines, want.lines) << "now:\n" << boost::algorithm::join(seen.lines, "; ");
  }
  EXPECT_THAT(seen.labels, IsSupersetOf(want.reaches));
  for (const auto& [name, value] : want.figures) EXPECT_EQ(seen.figures[name], value) << name;
}

INSTANTIATE_TEST_SUITE_P(Each, TranscriptOf, ValuesIn(transcripts()), [](const auto& one) {
  return test_name(one.param.lowering) + "_" + std::to_string(one.index);
});

}  // namespace
}  // namespace kvo::replay
