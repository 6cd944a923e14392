// Request traces on contract `snapshot`: what the lowerings emit, and what their figures rest on.
#include "properties/snapshot/lowering.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/replay/driven.hpp"
#include "properties/replay/prompt_tokens.hpp"
#include "reference/snapshot/trie_operations.hpp"

namespace kvo::snapshot {
namespace {

using replay::chats;
using replay::driven;
using replay::Driven;
using replay::LoweringInput;
using replay::PromptTokens;
using replay::request;
using replay::SchedulePolicy;
using testing::ElementsAre;
using traces::Request;

constexpr std::int64_t kNoLimit = 1'000'000;  // percent of what all takes

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
  EXPECT_THAT(driven("snapshot.trie kv", input_of(all, kChunksOfFour)).lines(trie_text),
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
      driven("snapshot.trie mixed", input_of(all, kChunksOfFour)).lines(trie_text),
      ElementsAre("new", "begin x6", "feed x4", "feed x1", "feed x1", "state", "state", "close",
                  "begin x6", "feed x3", "keep", "feed x1", "feed x1", "feed x1", "state", "state",
                  "close",                                                      //
                  "begin x6", "state", "feed x2", "feed x1", "state", "state",  // from there
                  "close", "tree"));
}

TEST(TrieLowering, ACancelledSessionIsClosedAfterOneChunk) {
  const std::vector<Request> all{request(12, 3, {1, 2, 3}), request(20, 3, {1, 2, 3, 4, 5})};
  const SchedulePolicy cancelled{.chunk_tokens = 4, .cancel_every = 1};
  const Driven seen = driven("snapshot.trie kv", input_of(all, cancelled));
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
      held = std::ssize(inputs) - std::ssize(seen.observed[i].as<Begin::Returns>().remaining);
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
    Driven seen = driven("snapshot.trie kv", input_of(chats(), schedule), profile);
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
  for (const char* layers : {"snapshot.trie kv", "snapshot.trie mixed"}) {
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      Driven open = driven(layers, input_of(chats()), profile);
      Driven seen = driven(layers, input_of(chats(), {}, 20), profile);
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
  Driven seen = driven("snapshot.trie kv", input_of(all));
  EXPECT_EQ(seen.figures["tokens restored"], 0);
  EXPECT_EQ(seen.figures["tokens restored at best"], 0);
}

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
  EXPECT_THAT(driven("snapshot.kv", input_of(all, kTwoSlots)).lines(cache_text),
              ElementsAre("new", "free", "update x4",                                         //
                          "snapshot from 0", "free", "update x4", "state",                    //
                          "snapshot from 0", "free", "restore 1 to 4", "update x4", "state",  //
                          "snapshot from 4", "merge 1 3", "free", "restore 2 to 4", "state",  //
                          "offset", "split 2 at 2", "free", "restore 5 to 2", "restore 6 to 4",
                          "state", "close 5", "close 6",      //
                          "free", "restore 4 to 8", "state",  //
                          "offset", "split 4 at 4", "free", "restore 7 to 4", "restore 8 to 8",
                          "state", "close 7", "close 8"));
  EXPECT_THAT(driven("snapshot.rotating", input_of(all, kTwoSlots)).lines(cache_text),
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
    EXPECT_TRUE(replay::caught_alone(name, {.scale = 1})) << name;
  }
}

}  // namespace
}  // namespace kvo::snapshot
