// Request traces on contract `snapshot`: what the lowerings emit, and what their figures rest on.
#include "properties/snapshot/lowering.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/contract_parts.hpp"
#include "properties/contracts.hpp"
#include "properties/replay/prompt_tokens.hpp"
#include "properties/replay/replay.hpp"
#include "reference/snapshot/trie_operations.hpp"
#include "traces/figures/generate.hpp"
#include "traces/formats/formats.hpp"
#include "traces/formats/sample.hpp"

namespace kvo::snapshot {
namespace {

using replay::LoweringInput;
using replay::PromptTokens;
using replay::SchedulePolicy;
using testing::ElementsAre;
using testing::IsEmpty;
using traces::Request;
using Lines = std::vector<std::string>;

constexpr std::int64_t kNoLimit = 1'000'000;  // percent of what all takes

Request request(std::int64_t input, std::int64_t output, std::vector<std::uint64_t> ids = {}) {
  Request made;
  made.input_tokens = input;
  made.output_tokens = output;
  made.block_ids = std::move(ids);
  return made;
}

// Conversations in blocks of eight tokens.
const std::vector<Request>& chats() {
  static const auto kRequests = [] {
    traces::GenerateOptions options;
    options.requests = 120;
    options.mean_turn_tokens = 20;
    options.mean_system_tokens = 30;
    options.mean_output_tokens = 8;
    options.system_prompts = 3;
    options.block_size = 8;
    return traces::generate(options).value();
  }();
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

const replay::Lowering& lowering_of(const CacheKind& kind, std::string_view name = {}) {
  static const std::vector<replay::Lowering> kAll = lowerings();
  return *std::ranges::find_if(
      kAll, [&](const replay::Lowering& one) { return one.kind == &kind && one.name == name; });
}

/// What became of a case on the reference.
struct Driven {
  std::vector<Op> ops = {};
  std::vector<Observation> seen = {};
  Labels labels = {};
  std::map<std::string, std::int64_t> figures = {};  ///< without the lowering's name

  [[nodiscard]] Lines lines(std::string (*text)(const Op& op)) const {
    Lines all;
    for (const Op& op : ops)
      if (std::string line = text(op); !line.empty()) all.push_back(std::move(line));
    return all;
  }
};

Driven driven(const replay::Lowering& lowering, LoweringInput input,
              Profile profile = Profile::kDocumented) {
  input.profile = profile;
  Setup setup = lowering.setup(input);
  setup.profile = profile;
  const auto session = std::move(*contracts().reference_of(*lowering.kind).open(setup));
  const auto stream = lowering.lower(input);
  Probe probe;
  Driven all;
  while (const auto op = stream->next()) {
    all.ops.push_back(*op);
    all.seen.push_back(session->apply(*op, probe));
    EXPECT_FALSE(all.seen.back().error) << op_text(*op);
    if (const Observation* want = stream->expected()) {
      EXPECT_EQ(observation_difference(*want, all.seen.back()), std::nullopt) << op_text(*op);
    }
    stream->saw(*op, all.seen.back(), all.labels);
  }
  for (const Figure& figure : stream->figures())
    all.figures[figure.name.substr(figure.name.find(": ") + 2)] = figure.value;
  return all;
}

LoweringInput input_of(const std::vector<Request>& requests, SchedulePolicy schedule = {},
                       std::int64_t pool_percent = kNoLimit) {
  return {.requests = requests,
          .schedule = schedule,
          .policy = {.pool_percent = pool_percent},
          .seed = 1};
}

// ---- Tokens of prompts ----

TEST(PromptTokens, EqualIdsGiveEqualTokensAtEqualPlaces) {
  const std::vector<Request> all{request(40, 0, {7, 8, 9}), request(32, 0, {7, 8}),
                                 request(20, 0, {7, 5}), request(16, 0), request(16, 0)};
  for (const std::int64_t scale : {1, 4, 64}) {
    PromptTokens prompts(all, scale);
    const Tokens first = prompts.prompt(all[0]);
    const Tokens second = prompts.prompt(all[1]);
    const Tokens third = prompts.prompt(all[2]);
    EXPECT_EQ(std::ssize(first), replay::scaled(40, scale));
    EXPECT_EQ(second, Tokens(first.begin(), first.begin() + std::ssize(second)));
    const auto block = replay::scaled(16, scale);
    for (std::int64_t i = 0; i < std::ssize(third); ++i)
      EXPECT_EQ(third[static_cast<std::size_t>(i)] == first[static_cast<std::size_t>(i)], i < block)
          << i;
    EXPECT_NE(prompts.prompt(all[3]).front(), prompts.prompt(all[4]).front()) << "without ids";
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

// ---- trie ----

std::string trie_text(const Op& op) {
  const auto some = [](const Tokens& tokens) { return " x" + std::to_string(tokens.size()); };
  if (const auto* made = op.as<Begin>()) return "begin" + some(made->inputs);
  if (const auto* made = op.as<Feed>()) return "feed" + some(made->tokens);
  if (const auto* made = op.as<Keep>()) return made->user ? "keep for a user" : "keep";
  if (op.as<ShowUsage>() != nullptr) return "";
  return std::string(op.kind().name);
}

constexpr SchedulePolicy kChunksOfFour{.chunk_tokens = 4, .cancel_every = 0};

TEST(TrieLowering, ARequestIsASessionThatBeginsWhereOneBeforePartsFromIt) {
  const std::vector<Request> all{request(6, 2, {1, 2}), request(6, 0, {1, 3})};
  EXPECT_THAT(driven(lowering_of(trie_kind(), "kv"), input_of(all, kChunksOfFour)).lines(trie_text),
              ElementsAre("new", "begin x6", "feed x4", "feed x1", "feed x1", "state",  //
                          "output", "feed x1", "output", "feed x1", "state", "close",   //
                          "begin x6", "state",  // three tokens are there
                          "feed x2", "feed x1", "state", "state", "close", "tree"));
}

TEST(TrieLowering, AChunkEndsWhereASnapshotIsAskedFor) {
  // What a recurrent layer saw before the second block it holds no more.
  const std::vector<Request> all{request(6, 0, {1, 2}), request(6, 0, {1, 3}),
                                 request(6, 0, {1, 4})};
  EXPECT_THAT(
      driven(lowering_of(trie_kind(), "mixed"), input_of(all, kChunksOfFour)).lines(trie_text),
      ElementsAre("new", "begin x6", "feed x4", "feed x1", "feed x1", "state", "state", "close",
                  "begin x6", "feed x3", "keep", "feed x1", "feed x1", "feed x1", "state", "state",
                  "close",                                                      //
                  "begin x6", "state", "feed x2", "feed x1", "state", "state",  // from there
                  "close", "tree"));
}

TEST(TrieLowering, ACancelledSessionIsClosedAfterOneChunk) {
  const std::vector<Request> all{request(12, 3, {1, 2, 3}), request(20, 3, {1, 2, 3, 4, 5})};
  const SchedulePolicy cancelled{.chunk_tokens = 4, .cancel_every = 1};
  const Driven seen = driven(lowering_of(trie_kind(), "kv"), input_of(all, cancelled));
  EXPECT_THAT(seen.lines(trie_text), ElementsAre("new", "begin x12", "feed x4", "close",  //
                                                 "begin x20", "state", "feed x4", "close", "tree"));
  EXPECT_TRUE(seen.labels.contains("session closed amid its prompt"));
}

// The longest beginning that a prompt has in common with what was fed before, whatever ids say.
std::pair<std::int64_t, std::int64_t> asked_and_common(const Driven& seen) {
  std::vector<Tokens> known;
  Tokens inputs;
  std::int64_t asked = 0;
  std::int64_t common = 0;
  std::int64_t held = 0;
  Tokens behind;
  for (std::size_t i = 0; i < seen.ops.size(); ++i) {
    if (const auto* begin = seen.ops[i].as<Begin>()) {
      inputs = begin->inputs;
      behind.clear();
      held = std::ssize(inputs) - std::ssize(seen.seen[i].as<Begin::Returns>().remaining);
      std::int64_t longest = 0;
      for (const Tokens& one : known)
        longest = std::max(longest, std::ranges::mismatch(inputs, one).in1 - inputs.begin());
      common += std::clamp<std::int64_t>(std::ssize(inputs) - 1, 0, longest);
      asked += std::ssize(inputs);
    }
    if (const auto* feed = seen.ops[i].as<Feed>())
      behind.insert(behind.end(), feed->tokens.begin(), feed->tokens.end());
    if (seen.ops[i].as<CloseSession>() == nullptr) continue;
    known.emplace_back(inputs.begin(), inputs.begin() + held);
    known.back().insert(known.back().end(), behind.begin(), behind.end());
  }
  return {asked, common};
}

TEST(TrieLowering, WithoutALimitEveryKnownTokenIsRestored) {
  for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
    const SchedulePolicy schedule{.scale = 2, .chunk_tokens = 16, .cancel_every = 5};
    Driven seen = driven(lowering_of(trie_kind(), "kv"), input_of(chats(), schedule), profile);
    const auto [asked, common] = asked_and_common(seen);
    EXPECT_GT(common, asked / 4);
    EXPECT_EQ(seen.figures["prompt tokens"], asked);
    EXPECT_EQ(seen.figures["tokens restored at best"], common);
    EXPECT_EQ(seen.figures["tokens restored"], common);
    EXPECT_EQ(seen.figures["evictions"], 0);
    EXPECT_EQ(seen.figures["sessions"], std::ssize(chats()));
  }
}

TEST(TrieLowering, ALimitIsReachedAndKept) {
  for (const char* layers : {"kv", "mixed"}) {
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const replay::Lowering& lowering = lowering_of(trie_kind(), layers);
      Driven open = driven(lowering, input_of(chats()), profile);
      Driven seen = driven(lowering, input_of(chats(), {}, 20), profile);
      EXPECT_GT(seen.figures["evictions"], 10) << layers;
      EXPECT_GT(seen.figures["restores of a layer"], 10) << layers;
      EXPECT_GT(seen.figures["tokens restored"], 0) << layers;
      EXPECT_LT(seen.figures["tokens restored"], open.figures["tokens restored"]) << layers;
      EXPECT_LE(seen.figures["tokens restored"], seen.figures["tokens restored at best"]) << layers;
      EXPECT_EQ(seen.figures["tokens restored at best"], open.figures["tokens restored at best"])
          << "what is known does not depend on what was evicted";
      EXPECT_EQ(seen.figures["sessions with another conversation's rows"], 0) << layers;
      EXPECT_LE(seen.figures["paged-out bytes at the end"],
                seen.figures["limit of paged-out bytes"]);
      EXPECT_GE(2 * seen.figures["paged-out bytes at most"],
                seen.figures["limit of paged-out bytes"]);
      EXPECT_EQ(open.figures["evictions"], 0);
    }
  }
}

TEST(TrieLowering, WithoutIdsNothingIsKnown) {
  std::vector<Request> all = chats();
  for (Request& one : all) one.block_ids.clear();
  Driven seen = driven(lowering_of(trie_kind(), "kv"), input_of(all));
  EXPECT_EQ(seen.figures["tokens restored"], 0);
  EXPECT_EQ(seen.figures["tokens restored at best"], 0);
}

// ---- All ----

Lines text_of(const Driven& seen) {
  Lines all;
  for (const Op& op : seen.ops) all.push_back(op_text(op));
  return all;
}

class SnapshotLowering : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static const replay::Lowering& lowering() {
    static const std::vector<replay::Lowering> kAll = lowerings();
    return *std::ranges::find(kAll, GetParam(), &replay::Lowering::full_name);
  }
};

TEST_P(SnapshotLowering, TheSameRequestsGiveTheSameOperations) {
  const LoweringInput input = input_of(chats(), {.scale = 2}, 40);
  const Driven once = driven(lowering(), input);
  EXPECT_GT(once.ops.size(), 1'000U);
  EXPECT_EQ(text_of(once), text_of(driven(lowering(), input)));
}

// What the command does by default leads each cache to all that its lowering knows.
TEST_P(SnapshotLowering, TheSampleReachesEveryState) {
  static const std::map<std::string, std::vector<std::string_view>> kStates{
      {"snapshot.kv",
       {"draft taken back without a snapshot", "sequence put away and brought back",
        "snapshot split", "snapshots merged"}},
      {"snapshot.rotating",
       {"draft taken back by a snapshot", "draft taken back without a snapshot", "ring full",
        "sequence put away and brought back"}},
      {"snapshot.recurrent",
       {"draft taken back by a snapshot", "sequence put away and brought back"}},
      {"snapshot.trie kv",
       {"beginning of a prompt restored", "known beginning not restored in full",
        "layer restored from a snapshot", "node evicted", "prompt kept for a user",
        "session closed amid its prompt"}},
      {"snapshot.trie mixed",
       {"beginning of a prompt restored", "known beginning not restored in full",
        "layer restored from a snapshot", "node evicted", "prompt kept for a user",
        "session closed amid its prompt", "snapshot taken where it was asked for"}}};
  const CacheKind& kind = *lowering().kind;
  const replay::Replay replay(contracts(), sample(),
                              {{.kind = &kind, .reference = &contracts().reference_of(kind)}});
  std::set<std::string> reached;
  for (std::uint64_t index = 0; index < replay.cases(); ++index) {
    const CasePlan plan = replay.plan(index);
    if (!lowering().name.empty() && !plan.name.starts_with(lowering().name)) continue;
    const CaseResult result = run_case(plan, {.attempts = 0});
    EXPECT_EQ(result.subjects.front().verdict.text(), "agrees") << plan.name;
    reached.insert(result.labels.begin(), result.labels.end());
  }
  EXPECT_THAT(reached, testing::ElementsAreArray(kStates.at(GetParam())));
}

Lines names_of_lowerings() {
  Lines names;
  for (const replay::Lowering& one : lowerings()) names.push_back(one.full_name());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Each, SnapshotLowering, testing::ValuesIn(names_of_lowerings()),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == '.' || c == ' '; }, '_');
                           return name;
                         });

// ---- kv, rotating, recurrent ----

std::string cache_text(const Op& op) {
  const auto handle = [](const Nullable<std::int64_t>& number) {
    return number.has_value() ? std::to_string(*number) : std::string("nothing");
  };
  if (const auto* made = op.as<Update>()) return "update x" + std::to_string(made->k.shape[2]);
  if (const auto* made = op.as<Take>()) return "snapshot from " + std::to_string(made->from);
  if (const auto* made = op.as<Restore>())
    return "restore " + handle(made->handle) + " to " + std::to_string(made->target);
  if (const auto* made = op.as<Merge>())
    return "merge " + handle(made->parent) + " " + handle(made->child);
  if (const auto* made = op.as<Split>())
    return "split " + handle(made->handle) + " at " + std::to_string(made->at);
  if (const auto* made = op.as<Close>()) return "close " + std::to_string(made->handle);
  return std::string(op.kind().name);
}

constexpr SchedulePolicy kTwoSlots{
    .max_running = 2, .chunk_tokens = 4, .draft_every = 0, .cancel_every = 0};

TEST(CacheLowering, SlotsTakeTurnsInOneCache) {
  const std::vector<Request> all{request(8, 0), request(4, 0)};
  EXPECT_THAT(driven(lowering_of(kv_kind()), input_of(all, kTwoSlots)).lines(cache_text),
              ElementsAre("new", "free", "update x4",                                         //
                          "snapshot from 0", "free", "update x4", "state",                    //
                          "snapshot from 0", "free", "restore 1 to 4", "update x4", "state",  //
                          "snapshot from 4", "merge 1 3", "free", "restore 2 to 4", "state",  //
                          "offset", "split 2 at 2", "free", "restore 5 to 2", "restore 6 to 4",
                          "state", "close 5", "close 6",      //
                          "free", "restore 4 to 8", "state",  //
                          "offset", "split 4 at 4", "free", "restore 7 to 4", "restore 8 to 8",
                          "state", "close 7", "close 8"));
  EXPECT_THAT(driven(lowering_of(rotating_kind()), input_of(all, kTwoSlots)).lines(cache_text),
              ElementsAre("new", "free", "update x4",                                         //
                          "snapshot from 0", "free", "update x4", "state",                    //
                          "snapshot from 0", "free", "restore 1 to 4", "update x4", "state",  //
                          "close 1", "snapshot from 0", "free", "restore 2 to 4", "state",    //
                          "offset", "close 2",                                                //
                          "free", "restore 3 to 8", "state", "offset", "close 3"));
}

// Alone, a faulty cache is its own judge: only what was put in can tell.
TEST(SnapshotLowerings, AFaultyJudgeIsCaught) {
  for (const char* name :
       {"snapshot.kv@mutant:merge_forgets_the_parent", "snapshot.kv@mutant:snapshot_ignores_from",
        "snapshot.kv@mutant:split_shares_a_token", "snapshot.recurrent@mutant:one_side_restored",
        "snapshot.recurrent@mutant:offset_not_restored"}) {
    const Subject* mutant = contracts().find_subject(name);
    ASSERT_NE(mutant, nullptr) << name;
    const replay::Replay replay(contracts(), chats(),
                                {{.kind = mutant->kind, .subjects = {mutant}}}, {.scale = 1});
    EXPECT_TRUE(run_case(replay.plan(0), {.attempts = 0}).subjects.front().verdict.failed())
        << name;
  }
}

}  // namespace
}  // namespace kvo::snapshot
