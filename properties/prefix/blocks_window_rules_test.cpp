// Single rules of prefix.blocks in both profiles: windows and chunks, figures and events.
#include "properties/prefix/blocks_rules_case.hpp"

namespace kvo::prefix {
namespace {

BlocksConfig windowed_blocks(std::int64_t num_blocks, std::int64_t window) {
  BlocksConfig config = blocks_of(num_blocks);
  config.attention = Attention::kSlidingWindow;
  config.window = window;
  return config;
}

BlocksConfig chunked_blocks(std::int64_t num_blocks, std::int64_t chunk) {
  BlocksConfig config = blocks_of(num_blocks);
  config.attention = Attention::kChunkedLocal;
  config.chunk = chunk;
  return config;
}

// The blocks that carry keys after a prompt got all its slots: "block:key", blocks from 1 on.
void expect_carried(const BlocksConfig& config, std::string_view prompt, const std::string& keys,
                    std::optional<std::int64_t> boundary = std::nullopt) {
  in_each_pool(config, [&](RulesCase& cache, bool /*original*/) {
    (void)keys_made(cache, 0, prompt);
    EXPECT_EQ(cache.code(SetRequest{.request = 0, .boundary = boundary}), "ok");
    (void)grown(cache, 0, std::ssize(prompt));
    EXPECT_EQ(carried(cache), keys);
  });
}

TEST(PrefixWindowRules, WhatLiesBehindTheWindowIsLetGoPX50PX51) {
  in_each_pool(windowed_blocks(8, 3), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcdefgh"), "[1, 2, 3, 4]");
    EXPECT_EQ(cache.code(Skip{.request = 0, .computed = 3}), "ok");
    EXPECT_EQ(block_table(cache, 0), Numbers({1, 2, 3, 4})) << "position 1 is seen";
    EXPECT_EQ(cache.code(Skip{.request = 0, .computed = 6}), "ok");
    EXPECT_EQ(block_table(cache, 0), Numbers({0, 0, 3, 4}));
    EXPECT_EQ(queue(cache), Numbers({5, 6, 7, 2, 1})) << "the highest first";
    EXPECT_EQ(cache.code(Skip{.request = 0, .computed = 5}), "ok");
    EXPECT_EQ(cache.code(Skip{.request = 0, .computed = 8}), "ok");
    EXPECT_EQ(block_table(cache, 0), Numbers({0, 0, 0, 4}));
    EXPECT_EQ(queue(cache), Numbers({5, 6, 7, 2, 1, 3}));
    EXPECT_EQ(cache.values(Pop{0}).blocks, Numbers({4})) << "without leading null blocks";
    EXPECT_EQ(cache.code(Skip{.request = 3, .computed = 8}), "precondition") << "never made";
  });
}

TEST(PrefixWindowRules, ABlockLetGoBelowZeroIsNotHandedOutPX47PX51) {
  in_each_pool(chunked_blocks(9, 1), [](RulesCase& cache, bool original) {
    EXPECT_EQ(begun(cache, 0, "ab"), "[1]");
    EXPECT_EQ(cache.code(Release{{1}}), "ok");
    EXPECT_EQ(cache.code(SetRequest{.request = 0, .computed = 9}), "ok");
    EXPECT_EQ(grown(cache, 0, 9), "precondition") << (original ? "at the queue" : "at the table");
    EXPECT_EQ(refs(cache), Numbers(9)) << "nothing has changed";
  });
}

TEST(PrefixWindowRules, ARunOfBlocksThatFillsTheWindowIsHitPX23PX52) {
  in_each_pool(windowed_blocks(8, 5), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcdefghi"), "[1, 2, 3, 4, 5]");
    EXPECT_EQ(found_of(cache, "abcdefghi"), "8 [0, 0, 3, 4]") << "two blocks are enough";
    EXPECT_EQ(found_of(cache, "abcdefxyz"), "6 [0, 2, 3]");
    EXPECT_EQ(cache.values(EvictBlocks{{2}}).evicted, Numbers({2}));
    EXPECT_EQ(found_of(cache, "abcdefghi"), "8 [0, 0, 3, 4]") << "not seen any more";
    EXPECT_EQ(found_of(cache, "abcdefxyz"), "2 [1]") << "a run of one does, at the start";
    EXPECT_EQ(cache.values(EvictBlocks{{1}}).evicted, Numbers({1}));
    EXPECT_EQ(found_of(cache, "abcdefxyz"), "0 []");
  });
  for (const auto& [window, hit] : {std::pair<std::int64_t, const char*>(2, "8 [0, 0, 0, 4]"),
                                    {3, "8 [0, 0, 0, 4]"},
                                    {4, "8 [0, 0, 3, 4]"},
                                    {6, "8 [0, 2, 3, 4]"}})
    in_each_pool(windowed_blocks(8, window), [&hit = hit](RulesCase& cache, bool /*original*/) {
      EXPECT_EQ(begun(cache, 0, "abcdefghi"), "[1, 2, 3, 4, 5]");
      EXPECT_EQ(found_of(cache, "abcdefghi"), hit) << "all that the next token sees";
    });
}

TEST(PrefixWindowRules, DraftHeadsNeedARunLongerByOnePX22PX52) {
  BlocksConfig config = windowed_blocks(8, 3);
  config.eagle = true;
  in_each_pool(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcdefghi"), "[1, 2, 3, 4, 5]");
    EXPECT_EQ(found_of(cache, "abcdefghi"), "6 [0, 0, 3]") << "of 3 and 4 the last is dropped";
    EXPECT_EQ(cache.values(EvictBlocks{{3}}).evicted, Numbers({3}));
    EXPECT_EQ(found_of(cache, "abcdefghi"), "2 [1]");
  });
}

TEST(PrefixWindowRules, NullBlocksStandForHitsThatAreNotSeenPX15PX27PX53) {
  in_each_pool(windowed_blocks(10, 5), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcdefghi"), "[1, 2, 3, 4, 5]");
    EXPECT_EQ(keys_made(cache, 1, "abcdefghij"), Numbers({0, 1, 2, 3, 4}));
    EXPECT_EQ(found(cache, 1), "8 [0, 0, 3, 4]");
    Allocate hits{.request = 1, .tokens = 2, .hit_blocks = Numbers({0, 0, 3, 4}), .hit_tokens = 8};
    EXPECT_EQ(allotted(cache, hits), "[6]");
    EXPECT_EQ(block_table(cache, 1), Numbers({0, 0, 3, 4, 6}));
    EXPECT_EQ(refs(cache), Numbers({0, 1, 1, 2, 2, 1, 1, 0, 0, 0}));
    EXPECT_EQ(carried(cache), "1:0 2:1 3:2 4:3 6:4");
    (void)keys_made(cache, 2, "abcdefghij");
    EXPECT_EQ(found(cache, 2, 4), "4 [1, 2]");
    hits = {
        .request = 2, .tokens = 2, .hit_blocks = Numbers({1, 2}), .hit_tokens = 4, .external = 4};
    EXPECT_EQ(allotted(cache, hits), "[9]");
    EXPECT_EQ(block_table(cache, 2), Numbers({0, 0, 7, 8, 9})) << "behind the external tokens";
    EXPECT_EQ(refs(cache), Numbers({0, 1, 1, 2, 2, 1, 1, 1, 1, 1})) << "1 and 2 are not pinned";
  });
}

TEST(PrefixWindowRules, AFailedAllotmentHasLetBlocksGoPX25PX26PX51) {
  in_each_pool(windowed_blocks(5, 3), [](RulesCase& cache, bool /*original*/) {
    (void)keys_made(cache, 0, "abcdefghijkl");
    EXPECT_EQ(grown(cache, 0, 8), "[1, 2, 3, 4]");
    EXPECT_EQ(cache.code(SetRequest{.request = 0, .computed = 8, .in_flight = 4}), "ok");
    EXPECT_EQ(allotted(cache, {.request = 0, .tokens = 10, .full_sequence = true}), "exhausted");
    EXPECT_EQ(block_table(cache, 0), Numbers({1, 2, 3, 4})) << "the whole sequence is asked first";
    EXPECT_EQ(grown(cache, 0, 10), "exhausted");
    EXPECT_EQ(block_table(cache, 0), Numbers({0, 2, 3, 4})) << "4 tokens are still under way";
    EXPECT_EQ(cache.code(SetRequest{.request = 0, .in_flight = 0}), "ok");
    EXPECT_EQ(grown(cache, 0, 10), "exhausted");
    EXPECT_EQ(block_table(cache, 0), Numbers({0, 0, 0, 4}));
    EXPECT_EQ(queue(cache), Numbers({1, 3, 2}));
    EXPECT_EQ(grown(cache, 0, 4), "[1, 3] evicts [1, 3]");
    EXPECT_EQ(block_table(cache, 0), Numbers({0, 0, 0, 4, 1, 3}));
  });
}

TEST(PrefixWindowRules, AWindowOfOneTokenKeepsNothingPX40PX54) {
  BlocksConfig config = windowed_blocks(8, 1);
  config.events = true;
  in_each_pool(config, [](RulesCase& cache, bool original) {
    EXPECT_EQ(begun(cache, 0, "abcdef"), "[1, 2, 3]");
    EXPECT_EQ(carried(cache), "");
    EXPECT_EQ(events_text(cache), original ? "stored [] after null: abcdef" : "");
    EXPECT_EQ(found_of(cache, "abcdefg"), "0 []");
  });
}

TEST(PrefixWindowRules, BlocksThatHaveNoKeyYetPX21PX48PX52) {
  BlocksConfig config = windowed_blocks(8, 3);
  in_each_pool(config, [](RulesCase& cache, bool original) {
    EXPECT_EQ(begun(cache, 0, "abc"), "[1, 2]");
    EXPECT_EQ(found(cache, 0, 3), "2 [1]");
    EXPECT_EQ(found(cache, 0, 4), original ? "precondition" : "2 [1]");
  });
  config.hash_lookahead = 2;
  in_each_pool(config, [](RulesCase& cache, bool original) {
    EXPECT_EQ(begun(cache, 0, "abcdefg"), "[1, 2, 3, 4]");
    EXPECT_EQ(carried(cache), "1:0 2:1");
    EXPECT_EQ(found(cache, 0), original ? "precondition" : "4 [0, 2]") << "the default limit";
  });
}

TEST(PrefixWindowRules, EventsOfASparseSpanPX40PX55) {
  BlocksConfig config = windowed_blocks(16, 3);
  config.retention = 4;
  config.events = true;
  in_each_pool(config, [](RulesCase& cache, bool original) {
    EXPECT_EQ(begun(cache, 0, "abcdefghi"), "[1, 2, 3, 4, 5]");
    EXPECT_EQ(carried(cache), "2:1 4:3");
    EXPECT_EQ(events_text(cache), original ? "stored [1, 3] after null: abcdefgh"
                                           : "stored [1] after 0: cd; stored [3] after 2: gh");
  });
}

TEST(PrefixWindowRules, OnlyBlocksThatAreSeenOftenGetKeysPX55) {
  const std::string prompt = "abcdefghijklmnopq";  // 17 tokens: the last of 8 blocks ends at 16
  BlocksConfig config = windowed_blocks(16, 5);    // a hit needs two blocks
  expect_carried(config, prompt, "1:0 2:1 3:2 4:3 5:4 6:5 7:6 8:7");
  config.retention = Nullable<std::int64_t>();
  expect_carried(config, prompt, "1:0 2:1 3:2 4:3 5:4 6:5 7:6 8:7");
  config.retention = 4;  // a segment of two
  expect_carried(config, prompt, "1:0 2:1 3:2 4:3 5:4 6:5 7:6 8:7");
  config.retention = 8;  // the last two of four, and those before the prompt's last token
  expect_carried(config, prompt, "3:2 4:3 7:6 8:7");
  expect_carried(config, prompt.substr(0, 14), "3:2 4:3 5:4 6:5 7:6");
  config.retention = 0;
  expect_carried(config, prompt, "7:6 8:7");
  expect_carried(config, prompt.substr(0, 13), "5:4 6:5");
  expect_carried(config, prompt, "2:1 3:2 7:6 8:7", 6);
}

TEST(PrefixWindowRules, BlocksThatGetKeysWithDraftHeadsPX55) {
  const std::string prompt = "abcdefghijklmnopq";
  BlocksConfig config = windowed_blocks(16, 3);
  config.eagle = true;  // a hit needs two blocks, one of them behind the boundary
  config.retention = 8;
  expect_carried(config, prompt, "4:3 5:4 7:6 8:7");
  config.retention = 0;
  expect_carried(config, prompt, "7:6 8:7");
  expect_carried(config, prompt, "2:1 3:2 4:3 7:6 8:7", 6);
}

TEST(PrefixWindowRules, TheWindowCapsWhatAdmissionAsksForPX26PX56) {
  const std::string prompt = "abcdefghijklmnopqrst";
  const auto expect_admitted = [&](BlocksConfig config, const std::string& expected) {
    in_each_pool(config, [&](RulesCase& cache, bool /*original*/) {
      (void)keys_made(cache, 0, prompt);
      EXPECT_EQ(allotted(cache, {.request = 0, .tokens = 4, .full_sequence = true}), expected);
    });
  };
  BlocksConfig config = windowed_blocks(5, 3);
  config.max_in_flight = 4;
  expect_admitted(config, "[1, 2]");
  config.max_in_flight = 5;
  expect_admitted(config, "exhausted");
  config = chunked_blocks(5, 4);
  config.max_in_flight = 4;
  expect_admitted(config, "[1, 2]");
  config.max_in_flight = 5;
  expect_admitted(config, "exhausted");
  config = blocks_of(5);
  config.max_in_flight = 4;
  expect_admitted(config, "exhausted");
}

TEST(PrefixWindowRules, ChunksThatNoTokenSeesAreHitUnheldPX50PX51PX57) {
  in_each_pool(chunked_blocks(8, 4), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(found_of(cache, "abcdefg"), "4 [0, 0]") << "nothing is held";
    EXPECT_EQ(found_of(cache, "abcd"), "0 []") << "the last token is in the first chunk";
    EXPECT_EQ(found_of(cache, ""), "0 []");
    EXPECT_EQ(begun(cache, 0, "abcdefg"), "[1, 2, 3, 4]");
    EXPECT_EQ(found_of(cache, "abcdefg"), "6 [0, 0, 3]");
    EXPECT_EQ(found_of(cache, "abcdxyz"), "4 [0, 0]");
    EXPECT_EQ(found_of(cache, "abc"), "2 [1]");
    EXPECT_EQ(cache.code(Skip{.request = 0, .computed = 3}), "ok");
    EXPECT_EQ(block_table(cache, 0), Numbers({1, 2, 3, 4})) << "one token of the chunk is to come";
    EXPECT_EQ(cache.code(Skip{.request = 0, .computed = 4}), "ok");
    EXPECT_EQ(block_table(cache, 0), Numbers({0, 0, 3, 4}));
    EXPECT_EQ(queue(cache), Numbers({5, 6, 7, 2, 1}));
    (void)keys_made(cache, 1, "abcdefg");
    const Allocate hits{
        .request = 1, .tokens = 1, .hit_blocks = Numbers({0, 0, 3}), .hit_tokens = 6};
    EXPECT_EQ(allotted(cache, hits), "[5]");
    EXPECT_EQ(block_table(cache, 1), Numbers({0, 0, 3, 5}));
    EXPECT_EQ(refs(cache)[3], 2);
  });
}

TEST(PrefixWindowRules, ChunksThatBeginWithinABlockPX57) {
  in_each_pool(chunked_blocks(8, 3), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(found_of(cache, "abcdef"), "2 [0]") << "block 1 has a token that is seen";
    EXPECT_EQ(found_of(cache, "abcdefg"), "6 [0, 0, 0]");
    EXPECT_EQ(begun(cache, 0, "abcdef"), "[1, 2, 3]");
    EXPECT_EQ(found_of(cache, "abcdef"), "4 [0, 2]");
  });
}

TEST(PrefixWindowRules, DraftHeadsInChunksPX48PX57) {
  BlocksConfig config = chunked_blocks(8, 4);
  config.eagle = true;
  expect_refused_where_documented(blocks_kind(), Record::of(config));
  for (const Subject* subject : contracts().subjects_of(blocks_kind())) {
    RulesCase cache(*subject, Profile::kOriginal, Record::of(config));
    EXPECT_EQ(begun(cache, 0, "abc"), "[1, 2]");
    EXPECT_EQ(found(cache, 0), "precondition") << subject->name();
  }
}

// ---- Figures and events ----

TEST(PrefixBlocksFigures, HitsAreCountedPX41) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    (void)keys_made(cache, 0, "abcde");
    EXPECT_EQ(cache.code(Append{0, tokens_of("f")}), "ok");
    EXPECT_EQ(cache.code(RecordHits{.request = 0, .hits = 4}), "ok");
    EXPECT_EQ(cache.code(RecordHits{.request = 0, .hits = 2}), "ok");
    EXPECT_EQ(cache.code(SetRequest{.request = 0, .preemptions = 1}), "ok");
    EXPECT_EQ(cache.code(RecordHits{.request = 0, .hits = 3}), "ok");
    const auto sums = cache.values(ShowStatistics{});
    EXPECT_EQ(Numbers({sums.requests, sums.queries, sums.hits}), Numbers({2, 12, 6}));
    EXPECT_EQ(Numbers({sums.preempted_requests, sums.preempted_queries, sums.preempted_hits}),
              Numbers({1, 6, 3}));
    EXPECT_EQ(cache.values(ShowStatistics{}).queries, 0) << "they begin anew";
  });
}

TEST(PrefixBlocksFigures, NumbersOfRequestsPX42) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abc"), "[1, 2]");
    EXPECT_EQ(begun(cache, 1024, "xyz"), "[3, 4]");
    EXPECT_EQ(begun(cache, kMostRequests - 1, "uvw"), "[5, 6]");
    EXPECT_EQ(block_table(cache, 0), Numbers({1, 2}));
    EXPECT_EQ(block_table(cache, 1024), Numbers({3, 4}));
    EXPECT_EQ(cache.code(FreeRequest{1024}), "ok");
    EXPECT_EQ(queue(cache), Numbers({4, 7, 3}));
    EXPECT_EQ(cache.code(MakeRequest{.request = kMostRequests}), "out_of_range");
    EXPECT_EQ(cache.code(MakeRequest{.request = -1}), "out_of_range");
  });
}

TEST(PrefixBlocksFigures, UsageAndCachedTokensPX39PX44) {
  in_each_pool(blocks_of(9), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(cache.values(ShowUsage{}).usage, 0);
    EXPECT_EQ(begun(cache, 0, "abcdefg"), "[1, 2, 3, 4]");
    EXPECT_EQ(cache.values(ShowUsage{}).usage, 0.5);
    EXPECT_EQ(cache.values(CachedTokens{0}).tokens, 6);
    EXPECT_EQ(cache.values(EvictBlocks{{1, 3}}).evicted, Numbers({1, 3}));
    EXPECT_EQ(cache.values(CachedTokens{0}).tokens, 4) << "the key stands for what is before, too";
    EXPECT_EQ(cache.values(EvictBlocks{{2}}).evicted, Numbers({2}));
    EXPECT_EQ(cache.values(CachedTokens{0}).tokens, 0);
    EXPECT_EQ(cache.values(CachedTokens{1}).tokens, 0);
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(cache.values(ShowUsage{}).usage, 0);
  });
  in_each_pool(blocks_of(1), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(cache.values(ShowUsage{}).usage, 0) << "the null block is not counted";
    EXPECT_EQ(cache.code(Take{1}), "exhausted");
    EXPECT_TRUE(cache.values(ResetBlocks{}).done);
  });
}

TEST(PrefixBlocksFigures, EventsTellWhatIsHeldPX40) {
  BlocksConfig config = blocks_of(5);
  config.events = true;
  in_each_pool(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcde"), "[1, 2, 3]");
    EXPECT_EQ(events_text(cache), "stored [0, 1] after null: abcd");
    EXPECT_EQ(events_text(cache), "");
    EXPECT_EQ(cache.code(SetRequest{.request = 0, .computed = 5}), "ok");
    EXPECT_EQ(cache.values(Append{0, tokens_of("f")}).keys, Numbers({2}));
    EXPECT_EQ(grown(cache, 0, 1), "[]");
    EXPECT_EQ(events_text(cache), "stored [2] after 1: ef");
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(queue(cache), Numbers({4, 3, 2, 1}));
    EXPECT_EQ(cache.values(Take{3}).evicted, Numbers({3, 2}));
    EXPECT_EQ(events_text(cache), "removed [2]; removed [1]") << "one a key";
    EXPECT_FALSE(cache.values(ResetBlocks{}).done);
    EXPECT_EQ(cache.code(Release{{4, 3, 2}}), "ok");
    EXPECT_TRUE(cache.values(ResetBlocks{}).done);
    EXPECT_EQ(events_text(cache), "cleared") << "once, and no removed for block 1";
  });
  config.events = false;
  in_each_pool(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcde"), "[1, 2, 3]");
    EXPECT_EQ(events_text(cache), "");
  });
}

TEST(PrefixBlocksFigures, AnotherHolderOfARemovedKeyPX31PX40) {
  BlocksConfig config = blocks_of(5);
  config.events = true;
  in_each_pool(config, [](RulesCase& cache, bool original) {
    EXPECT_EQ(begun(cache, 0, "ab"), "[1]");
    EXPECT_EQ(begun(cache, 1, "ab"), "[2]");
    EXPECT_EQ(events_text(cache), "stored [0] after null: ab; stored [0] after null: ab");
    EXPECT_EQ(cache.values(EvictBlocks{{1}}).evicted, Numbers({1}));
    EXPECT_EQ(events_text(cache), original ? "removed [0]" : "");
    EXPECT_EQ(cache.values(EvictBlocks{{2}}).evicted, Numbers({2}));
    EXPECT_EQ(events_text(cache), "removed [0]");
  });
}

}  // namespace
}  // namespace kvo::prefix
