// Single rules of prefix.blocks, in both profiles, but for windows, chunks, figures and events.
#include "properties/prefix/blocks_rules_case.hpp"

namespace kvo::prefix {
namespace {

// ---- Keys ----

TEST(PrefixBlocksRules, KeysAreChainedOverWholeBlocksPX2PX10PX11) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(keys_made(cache, 0, "abcde"), Numbers({0, 1}));
    EXPECT_EQ(keys_made(cache, 1, "abxx"), Numbers({0, 2}));
    EXPECT_EQ(keys_made(cache, 2, "xxcd"), Numbers({3, 4})) << "cd behind another block";
    EXPECT_EQ(keys_made(cache, 3, "cd"), Numbers({5})) << "cd at the start";
    EXPECT_EQ(keys_made(cache, 4, "a"), Numbers());
    EXPECT_EQ(cache.values(Append{0, tokens_of("f")}).keys, Numbers({6}));
    EXPECT_EQ(cache.values(Append{0, tokens_of("g")}).keys, Numbers());
    EXPECT_EQ(cache.values(Append{0, tokens_of("hij")}).keys, Numbers({7, 8}));
    EXPECT_EQ(keys_made(cache, 5, "abcdefgh"), Numbers({0, 1, 6, 7})) << "prompt or output";
    EXPECT_EQ(cache.code(Append{6, tokens_of("a")}), "precondition") << "never made";
  });
}

TEST(PrefixBlocksRules, AdaptersAndSaltsPartKeysPX5PX12) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    MakeRequest made{.request = 0, .tokens = tokens_of("abcd")};
    const auto keys = [&](auto salt, auto lora, auto path) {
      made.salt = salt;
      made.lora = lora;
      made.lora_path = path;
      return cache.values(MakeRequest(made)).keys;
    };
    const std::optional<std::string> none;
    const std::optional<std::string> x = "x";
    EXPECT_EQ(keys(none, none, none), Numbers({0, 1}));
    EXPECT_EQ(keys(std::optional<std::string>(""), none, none), Numbers({0, 1}));
    EXPECT_EQ(keys(none, none, x), Numbers({0, 1})) << "a path of no adapter";
    EXPECT_EQ(keys(x, none, none), Numbers({2, 3})) << "the salt reaches block 1 by the chain";
    EXPECT_EQ(keys(none, x, none), Numbers({4, 5}));
    EXPECT_EQ(keys(none, x, x), Numbers({6, 7}));
    EXPECT_EQ(keys(x, x, none), Numbers({8, 9}));
    EXPECT_EQ(grown(cache, 0, 4), "[1, 2]");
    made.tokens = tokens_of("abcde");
    EXPECT_EQ(keys(x, x, none), Numbers({8, 9}));
    EXPECT_EQ(found(cache, 0), "4 [1, 2]");
    EXPECT_EQ(keys(x, none, none), Numbers({2, 3}));
    EXPECT_EQ(found(cache, 0), "0 []");
    EXPECT_EQ(keys(none, x, none), Numbers({4, 5}));
    EXPECT_EQ(found(cache, 0), "0 []");
  });
}

TEST(PrefixBlocksRules, KeysHoldWhatDraftHeadsReadAheadPX11PX13) {
  BlocksConfig config = blocks_of(8);
  config.hash_lookahead = 1;
  in_each_pool(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(keys_made(cache, 0, "ab"), Numbers()) << "the token behind is not known yet";
    EXPECT_EQ(keys_made(cache, 0, "abcd"), Numbers({0}));
    EXPECT_EQ(keys_made(cache, 1, "abcx"), Numbers({0})) << "c is behind both";
    EXPECT_EQ(keys_made(cache, 2, "abxd"), Numbers({1}));
    EXPECT_EQ(cache.values(Append{0, tokens_of("e")}).keys, Numbers({2}));
  });
  config.hash_lookahead = 3;
  in_each_pool(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(keys_made(cache, 0, "abcd"), Numbers());
    EXPECT_EQ(keys_made(cache, 0, "abcde"), Numbers({0}));
    EXPECT_EQ(keys_made(cache, 1, "abcdx"), Numbers({1}));
    EXPECT_EQ(keys_made(cache, 2, "abcdex"), Numbers({0}));
  });
}

TEST(PrefixBlocksRules, WithoutCachingThereAreNoKeysPX11PX20PX30PX34) {
  BlocksConfig config = blocks_of(6);
  config.enable_caching = false;
  in_each_pool(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(keys_made(cache, 0, "abcd"), Numbers());
    EXPECT_EQ(grown(cache, 0, 4), "[1, 2]");
    EXPECT_EQ(carried(cache), "");
    EXPECT_EQ(found_of(cache, "abcde"), "0 []");
    const Allocate hits{.request = 99, .tokens = 1, .hit_blocks = Numbers({1}), .hit_tokens = 2};
    EXPECT_EQ(allotted(cache, hits), "precondition");
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(queue(cache), Numbers({2, 1, 3, 4, 5})) << "all to the front, the tail first";
    EXPECT_EQ(cache.code(RecordHits{.request = 0, .hits = 2}), "ok");
    EXPECT_EQ(cache.values(ShowStatistics{}).requests, 0);
  });
}

// ---- Lookup ----

TEST(PrefixBlocksRules, AHitIsWholeBlocksFromTheStartPX1PX2PX20PX23) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcde"), "[1, 2, 3]");
    EXPECT_EQ(found_of(cache, "abcdxy"), "4 [1, 2]");
    EXPECT_EQ(found_of(cache, "abcdefgh"), "4 [1, 2]") << "the open block is of one request";
    EXPECT_EQ(found_of(cache, "abcx"), "2 [1]");
    EXPECT_EQ(found_of(cache, "abxxcdx"), "2 [1]");
    EXPECT_EQ(found_of(cache, "cdx"), "0 []");
    EXPECT_EQ(found_of(cache, "axcdx"), "0 []");
    EXPECT_EQ(refs(cache), Numbers({0, 1, 1, 1, 0, 0, 0, 0})) << "a lookup pins nothing";
    EXPECT_EQ(queue(cache), Numbers({4, 5, 6, 7}));
  });
}

TEST(PrefixBlocksRules, TheLastTokenIsNotHitPX6PX21) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcd"), "[1, 2]");
    EXPECT_EQ(keys_made(cache, 1, "abcd"), Numbers({0, 1}));
    EXPECT_EQ(found(cache, 1), "2 [1]");
    EXPECT_EQ(found(cache, 1, 4), "4 [1, 2]") << "unless the caller says so";
    EXPECT_EQ(found(cache, 1, 3), "2 [1]");
    EXPECT_EQ(found(cache, 1, 1), "0 []");
    EXPECT_EQ(found(cache, 1, 0), "0 []");
    EXPECT_EQ(cache.code(Append{1, tokens_of("x")}), "ok");
    EXPECT_EQ(found(cache, 1), "4 [1, 2]") << "output counts";
    EXPECT_EQ(cache.code(MatchBlocks{.request = 7}), "precondition") << "never made";
  });
}

TEST(PrefixBlocksRules, AnEmptyPromptHitsNothingPX48) {
  in_each_pool(blocks_of(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(found_of(cache, ""), original ? "precondition" : "0 []");
  });
  in_each_pool(blocks_of(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(begun(cache, 0, "abcd"), "[1, 2]");
    EXPECT_EQ(found(cache, 0, -1), original ? "precondition" : "0 []");
  });
}

TEST(PrefixBlocksRules, ARequestMayReadNothingPX20PX41) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcde"), "[1, 2, 3]");
    const MakeRequest blind{.request = 1, .tokens = tokens_of("abcde"), .skip_reading = true};
    EXPECT_EQ(cache.values(MakeRequest(blind)).keys, Numbers({0, 1})) << "it writes all the same";
    EXPECT_EQ(found(cache, 1), "0 []");
    EXPECT_EQ(cache.code(RecordHits{.request = 1, .hits = 0}), "ok");
    EXPECT_EQ(cache.values(ShowStatistics{}).requests, 0);
  });
}

TEST(PrefixBlocksRules, DraftHeadsComputeTheLastHitBlockAgainPX22) {
  BlocksConfig config = blocks_of(8);
  config.eagle = true;
  in_each_pool(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcdef"), "[1, 2, 3]");
    EXPECT_EQ(found_of(cache, "abcdefg"), "4 [1, 2]");
    EXPECT_EQ(found_of(cache, "abcdef"), "2 [1]") << "and the last token, too";
    EXPECT_EQ(found_of(cache, "abx"), "0 []");
    EXPECT_EQ(found_of(cache, "x"), "0 []");
  });
}

TEST(PrefixBlocksRules, OneOfSeveralHoldersIsFoundPX16PX24PX31PX34) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcd"), "[1, 2]");
    EXPECT_EQ(begun(cache, 1, "abcd"), "[3, 4]");
    EXPECT_EQ(carried(cache), "1:0 2:1 3:0 4:1") << "nothing is merged";
    EXPECT_EQ(block_table(cache, 1), Numbers({3, 4}));
    EXPECT_EQ(found_of(cache, "abcde"), "4 [1, 2]") << "the first";
    EXPECT_EQ(cache.code(FreeRequest{1}), "ok");
    EXPECT_EQ(queue(cache), Numbers({5, 6, 7, 4, 3})) << "all holders are let go alike";
    EXPECT_EQ(cache.values(EvictBlocks{{1}}).evicted, Numbers({1}));
    EXPECT_EQ(cache.values(LookUp{0}).block.value, 3);
    EXPECT_EQ(found_of(cache, "abcde"), "4 [3, 2]");
    EXPECT_EQ(cache.values(EvictBlocks{{3}}).evicted, Numbers({3}));
    EXPECT_EQ(cache.values(LookUp{0}).block.value, std::nullopt);
    EXPECT_EQ(cache.values(LookUp{1}).block.value, 2);
    EXPECT_EQ(cache.values(LookUp{7}).block.value, std::nullopt) << "never seen";
  });
}

TEST(PrefixBlocksRules, AGapEndsAHitAndABlockInUseGetsNoSecondKeyPX23PX36) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcdefg"), "[1, 2, 3, 4]");
    EXPECT_EQ(cache.values(EvictBlocks{{2}}).evicted, Numbers({2}));
    EXPECT_EQ(cache.values(EvictBlocks{{4, 2}}).evicted, Numbers()) << "neither has one";
    EXPECT_EQ(refs(cache), Numbers({0, 1, 1, 1, 1, 0, 0, 0}));
    EXPECT_EQ(found_of(cache, "abcdefg"), "2 [1]") << "block 3 is held behind the gap";
    EXPECT_EQ(cache.code(CacheTokens{.request = 0, .tokens = 6}), "ok");
    EXPECT_EQ(carried(cache), "1:0 3:2");
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(queue(cache), Numbers({4, 2, 5, 6, 7, 3, 1}));
    EXPECT_EQ(cache.values(EvictBlocks{{1, 3}}).evicted, Numbers({1, 3})) << "in list order";
    EXPECT_EQ(queue(cache), Numbers({4, 2, 5, 6, 7, 3, 1})) << "a free block stays in its place";
  });
}

// ---- Slots ----

TEST(PrefixBlocksRules, SlotsAreHandedOutAsTheTokensNeedPX25PX30PX43) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(keys_made(cache, 0, "abcdefg"), Numbers({0, 1, 2}));
    EXPECT_EQ(grown(cache, 0, 3), "[1, 2]");
    EXPECT_EQ(carried(cache), "1:0") << "a block gets its key when its last slot is handed out";
    EXPECT_EQ(cache.code(SetRequest{.request = 0, .computed = 3}), "ok");
    EXPECT_EQ(grown(cache, 0, 1), "[]") << "the open block has room";
    EXPECT_EQ(carried(cache), "1:0 2:1");
    EXPECT_EQ(cache.code(SetRequest{.request = 0, .computed = 4}), "ok");
    EXPECT_EQ(grown(cache, 0, 3), "[3, 4]");
    EXPECT_EQ(block_table(cache, 0), Numbers({1, 2, 3, 4}));
    EXPECT_EQ(carried(cache), "1:0 2:1 3:2");
    EXPECT_EQ(grown(cache, 0, 0), "precondition") << "nothing is asked for";
    EXPECT_EQ(grown(cache, 1, 1), "precondition") << "never made";
    EXPECT_EQ(block_table(cache, 1), Numbers());
  });
}

TEST(PrefixBlocksRules, PlacesForDraftsGetNoKeysPX25PX30) {
  BlocksConfig config = blocks_of(8);
  in_each_pool(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(keys_made(cache, 0, "abc"), Numbers({0}));
    EXPECT_EQ(allotted(cache, {.request = 0, .tokens = 3, .lookahead = 2}), "[1, 2, 3]");
    EXPECT_EQ(carried(cache), "1:0");
    EXPECT_EQ(begun(cache, 1, "xyz"), "[4, 5]");
    EXPECT_EQ(grown(cache, 1, 5), "[6]") << "of its tokens two are drafts";
    EXPECT_EQ(carried(cache), "1:0 4:1");
  });
  config.max_model_len = 4;
  in_each_pool(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(keys_made(cache, 0, "abc"), Numbers({0}));
    EXPECT_EQ(allotted(cache, {.request = 0, .tokens = 3, .lookahead = 5}), "[1, 2]")
        << "no slot beyond what a request may have";
  });
}

TEST(PrefixBlocksRules, HitsArePinnedAndSharedPX3PX4PX28PX29PX33) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcde"), "[1, 2, 3]");
    EXPECT_EQ(keys_made(cache, 1, "abcdxy"), Numbers({0, 1, 2}));
    Allocate hits{.request = 1, .tokens = 2, .hit_blocks = Numbers({1, 2}), .hit_tokens = 4};
    EXPECT_EQ(allotted(cache, hits), "[4]") << "hit blocks are not new";
    EXPECT_EQ(block_table(cache, 1), Numbers({1, 2, 4}));
    EXPECT_EQ(refs(cache), Numbers({0, 2, 2, 1, 1, 0, 0, 0}));
    EXPECT_EQ(carried(cache), "1:0 2:1 4:2") << "only what lies behind the hits gets keys";
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(queue(cache), Numbers({3, 5, 6, 7})) << "what is in use stays";
    EXPECT_EQ(cache.code(FreeRequest{1}), "ok");
    EXPECT_EQ(queue(cache), Numbers({3, 5, 6, 7, 4, 2, 1}));
    EXPECT_EQ(keys_made(cache, 2, "abcdxz"), Numbers({0, 1, 3}));
    hits.request = 2;
    hits.tokens = 0;
    EXPECT_EQ(allotted(cache, hits), "[]") << "hits alone";
    EXPECT_EQ(block_table(cache, 2), Numbers({1, 2}));
    EXPECT_EQ(queue(cache), Numbers({3, 5, 6, 7, 4})) << "from wherever they stand";
  });
}

TEST(PrefixBlocksRules, ARunningRequestHasNoHitsPX28PX48) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "ab"), "[1]");
    EXPECT_EQ(begun(cache, 1, "abcdefgh"), "[2, 3, 4, 5]");
    EXPECT_EQ(cache.code(SetRequest{.request = 1, .computed = 6}), "ok");
    Allocate hits{.request = 1, .tokens = 2, .hit_blocks = Numbers({1}), .hit_tokens = 2};
    EXPECT_EQ(allotted(cache, hits), "precondition") << "tracked";
    EXPECT_EQ(keys_made(cache, 2, "abc"), Numbers({0}));
    EXPECT_EQ(grown(cache, 2, 1), "[6]");
    hits.request = 2;
    EXPECT_EQ(allotted(cache, hits), "precondition") << "not tracked, but with a table";
    EXPECT_EQ(block_table(cache, 2), Numbers({6}));
    EXPECT_EQ(refs(cache), Numbers({0, 1, 1, 1, 1, 1, 1, 0}));
    EXPECT_EQ(allotted(cache, {.request = 1, .tokens = 1, .external = 2}), "[7]")
        << "of a tracked request external tokens are new ones";
  });
}

TEST(PrefixBlocksRules, ExternalTokensGetBlocksOfTheirOwnPX27PX30) {
  in_each_pool(blocks_of(5), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "xyzwv"), "[1, 2, 3]");
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(queue(cache), Numbers({3, 4, 2, 1}));
    EXPECT_EQ(keys_made(cache, 1, "abcdefg"), Numbers({2, 3, 4}));
    EXPECT_EQ(allotted(cache, {.request = 1, .tokens = 1, .external = 6}), "[1] evicts [2, 1]")
        << "the first three are the external tokens'";
    EXPECT_EQ(block_table(cache, 1), Numbers({3, 4, 2, 1}));
    EXPECT_EQ(carried(cache), "2:4 3:2 4:3") << "they get keys like others";
  });
}

TEST(PrefixBlocksRules, KeysMayBeSetLaterPX30) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(keys_made(cache, 0, "abcdefg"), Numbers({0, 1, 2}));
    EXPECT_EQ(allotted(cache, {.request = 0, .tokens = 7, .delay_caching = true}), "[1, 2, 3, 4]");
    EXPECT_EQ(carried(cache), "");
    EXPECT_EQ(found_of(cache, "abcdefg"), "0 []");
    EXPECT_EQ(cache.code(CacheTokens{.request = 0, .tokens = 3}), "ok");
    EXPECT_EQ(carried(cache), "1:0");
    EXPECT_EQ(cache.code(CacheTokens{.request = 0, .tokens = 7}), "ok");
    EXPECT_EQ(carried(cache), "1:0 2:1 3:2");
    EXPECT_EQ(cache.code(CacheTokens{.request = 0, .tokens = 2}), "ok") << "nothing is taken back";
    EXPECT_EQ(carried(cache), "1:0 2:1 3:2");
    EXPECT_EQ(found_of(cache, "abcdefg"), "6 [1, 2, 3]");
  });
}

TEST(PrefixBlocksRules, HeldHitsThatAreFreeAreNeededTooPX26) {
  in_each_pool(blocks_of(5), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcde"), "[1, 2, 3]");
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(queue(cache), Numbers({3, 4, 2, 1}));
    EXPECT_EQ(keys_made(cache, 1, "abcdxyzwv"), Numbers({0, 1, 2, 3}));
    Allocate hits{.request = 1, .tokens = 5, .hit_blocks = Numbers({1, 2}), .hit_tokens = 4};
    EXPECT_EQ(allotted(cache, hits), "exhausted") << "three new ones and the two that are hit";
    EXPECT_EQ(block_table(cache, 1), Numbers());
    EXPECT_EQ(queue(cache), Numbers({3, 4, 2, 1}));
    EXPECT_EQ(carried(cache), "1:0 2:1");
    hits.tokens = 4;
    EXPECT_EQ(allotted(cache, hits), "[3, 4]");
    EXPECT_EQ(grown(cache, 1, 9), "exhausted");
    EXPECT_EQ(block_table(cache, 1), Numbers({1, 2, 3, 4}));
  });
}

TEST(PrefixBlocksRules, AdmissionLeavesTheWatermarkFreePX26PX42) {
  BlocksConfig config = blocks_of(5);
  config.watermark = 0.39;  // of 5 blocks: 1
  in_each_pool(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcdefgh"), "exhausted") << "waiting";
    EXPECT_EQ(cache.code(SetRequest{.request = 0, .status = RequestStatus::kPreempted}), "ok");
    EXPECT_EQ(grown(cache, 0, 8), "exhausted");
    EXPECT_EQ(allotted(cache, {.request = 0, .tokens = 8, .others_scheduled = false}),
              "[1, 2, 3, 4]");
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(cache.code(SetRequest{.request = 0, .status = RequestStatus::kRunning}), "ok");
    EXPECT_EQ(grown(cache, 0, 8), "[4, 3, 2, 1] evicts [4, 3, 2, 1]");
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(begun(cache, 1, "uvwxyz"), "[1, 2, 3] evicts [1, 2, 3]") << "one is left";
  });
}

TEST(PrefixBlocksRules, TheWholeSequenceAndPromisedBlocksCountPX26) {
  in_each_pool(blocks_of(5), [](RulesCase& cache, bool /*original*/) {
    (void)keys_made(cache, 0, "abcdefghij");
    EXPECT_EQ(allotted(cache, {.request = 0, .tokens = 2, .full_sequence = true}), "exhausted");
    EXPECT_EQ(allotted(cache, {.request = 0, .tokens = 2, .reserved = 4}), "exhausted");
    EXPECT_EQ(queue(cache), Numbers({1, 2, 3, 4}));
    EXPECT_EQ(allotted(cache, {.request = 0, .tokens = 2}), "[1]");
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(queue(cache), Numbers({2, 3, 4, 1}));
    (void)keys_made(cache, 1, "stuvwxyz");
    const Allocate both{.request = 1, .tokens = 2, .full_sequence = true, .reserved = 3};
    EXPECT_EQ(allotted(cache, both), "[2]") << "of the whole sequence nothing is promised";
  });
}

TEST(PrefixBlocksRules, StaleHitsPX47) {
  in_each_pool(blocks_of(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(begun(cache, 0, "abc"), "[1, 2]");
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(keys_made(cache, 1, "abcd"), Numbers({0, 1}));
    EXPECT_EQ(found(cache, 1), "2 [1]");
    EXPECT_EQ(cache.values(Take{3}).evicted, Numbers({1})) << "handed out in between";
    EXPECT_EQ(cache.code(Release{{1, 2}}), "ok");
    const Allocate hits{.request = 1, .tokens = 2, .hit_blocks = Numbers({1}), .hit_tokens = 2};
    EXPECT_EQ(allotted(cache, hits), original ? "[2]" : "precondition");
    EXPECT_EQ(block_table(cache, 1), original ? Numbers({1, 2}) : Numbers());
    EXPECT_EQ(queue(cache), original ? Numbers() : Numbers({1, 2}));
    EXPECT_EQ(carried(cache), original ? "2:1" : "") << "block 1 counts as registered";
  });
  in_each_pool(blocks_of(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(begun(cache, 0, "abcd"), "[1, 2]");
    EXPECT_EQ(keys_made(cache, 1, "abcde"), Numbers({0, 1}));
    const Allocate hits{.request = 1, .tokens = 1, .hit_blocks = Numbers({2}), .hit_tokens = 2};
    EXPECT_EQ(allotted(cache, hits), original ? "[3]" : "precondition") << "another place's";
  });
}

// ---- Letting go ----

TEST(PrefixBlocksRules, TheTailIsEvictedFirstPX7PX17PX33PX34PX35) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcde"), "[1, 2, 3]");
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(queue(cache), Numbers({3, 4, 5, 6, 7, 2, 1}));
    EXPECT_EQ(block_table(cache, 0), Numbers());
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok") << "again: nothing";
    EXPECT_EQ(cache.code(FreeRequest{5}), "ok") << "never made: nothing";
    EXPECT_EQ(begun(cache, 1, "uvwxyz1"), "[3, 4, 5, 6]");
    EXPECT_EQ(cache.code(FreeRequest{1}), "ok");
    EXPECT_EQ(queue(cache), Numbers({6, 7, 2, 1, 5, 4, 3})) << "without a key, unused, by age";
    const auto taken = cache.values(Take{3});
    EXPECT_EQ(taken.blocks, Numbers({6, 7, 2}));
    EXPECT_EQ(taken.evicted, Numbers({2}));
    EXPECT_EQ(found_of(cache, "abcde"), "2 [1]") << "what stays is a prefix";
  });
}

TEST(PrefixBlocksRules, AHitIsRenewedWhenItIsLetGoPX20PX29PX35) {
  in_each_pool(blocks_of(5), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abc"), "[1, 2]");
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(begun(cache, 1, "xyz"), "[2, 3]");
    EXPECT_EQ(cache.code(FreeRequest{1}), "ok");
    EXPECT_EQ(queue(cache), Numbers({3, 4, 1, 2}));
    EXPECT_EQ(found_of(cache, "abc"), "2 [1]");
    EXPECT_EQ(queue(cache), Numbers({3, 4, 1, 2})) << "not by a lookup";
    EXPECT_EQ(
        allotted(cache, {.request = 99, .tokens = 1, .hit_blocks = Numbers({1}), .hit_tokens = 2}),
        "[3]");
    EXPECT_EQ(queue(cache), Numbers({4, 2}));
    EXPECT_EQ(cache.code(FreeRequest{99}), "ok");
    EXPECT_EQ(queue(cache), Numbers({3, 4, 2, 1}));
  });
}

TEST(PrefixBlocksRules, WhatARequestKeepsWhenItIsFreedOrMadeAnewPX33PX42) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcde"), "[1, 2, 3]");
    EXPECT_EQ(cache.code(SetRequest{.request = 0, .computed = 4}), "ok");
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(grown(cache, 0, 1), "[3, 4, 5]") << "computed stays";
    EXPECT_EQ(carried(cache), "1:0 2:1 3:0 4:1") << "tokens and keys stay";
    EXPECT_EQ(keys_made(cache, 0, "xyzw"), Numbers({2, 3}));
    EXPECT_EQ(block_table(cache, 0), Numbers({3, 4, 5})) << "the table stays";
    EXPECT_EQ(grown(cache, 0, 6), "[]") << "computed begins anew";
    EXPECT_EQ(carried(cache), "1:0 2:1 3:0 4:1") << "both blocks count as registered";
  });
}

TEST(PrefixBlocksRules, APoppedTableIsReleasedByHandPX31PX33PX34) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcde"), "[1, 2, 3]");
    EXPECT_EQ(begun(cache, 1, "abcd"), "[4, 5]");
    EXPECT_EQ(cache.values(Pop{0}).blocks, Numbers({1, 2, 3}));
    EXPECT_EQ(block_table(cache, 0), Numbers());
    EXPECT_EQ(cache.values(Pop{0}).blocks, Numbers());
    EXPECT_EQ(cache.values(Pop{1}).blocks, Numbers({4, 5}));
    EXPECT_EQ(refs(cache), Numbers({0, 1, 1, 1, 1, 1, 0, 0})) << "nothing is released";
    EXPECT_EQ(cache.code(Release{{1, 2, 3, 4, 5}}), "ok");
    EXPECT_EQ(queue(cache), Numbers({3, 6, 7, 1, 2, 4, 5})) << "in list order, here heads first";
  });
}

TEST(PrefixBlocksRules, ThePoolByHandPX14PX15PX29PX34PX38) {
  in_each_pool(blocks_of(6), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(queue(cache), Numbers({1, 2, 3, 4, 5}));
    EXPECT_EQ(cache.values(Take{3}).blocks, Numbers({1, 2, 3}));
    EXPECT_EQ(cache.code(TouchBlocks{{2, 4, 0}}), "ok");
    EXPECT_EQ(queue(cache), Numbers({5}));
    EXPECT_EQ(refs(cache), Numbers({0, 1, 2, 1, 1, 0})) << "the null block is passed over";
    EXPECT_EQ(cache.code(Release{{0, 3, 2, 1}}), "ok");
    EXPECT_EQ(queue(cache), Numbers({3, 1, 5}));
    EXPECT_EQ(refs(cache), Numbers({0, 0, 1, 0, 1, 0}));
    EXPECT_EQ(cache.code(Take{4}), "exhausted");
    EXPECT_EQ(queue(cache), Numbers({3, 1, 5}));
    EXPECT_EQ(cache.values(Take{3}).blocks, Numbers({3, 1, 5}));
    EXPECT_EQ(cache.code(TouchBlocks{{6}}), "out_of_range");
  });
}

TEST(PrefixBlocksRules, CountsBelowZeroPX38PX47) {
  in_each_pool(blocks_of(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.values(Take{2}).blocks, Numbers({1, 2}));
    EXPECT_EQ(cache.code(Release{{1}}), "ok");
    EXPECT_EQ(cache.code(Release{{2, 1}}), original ? "ok" : "precondition");
    EXPECT_EQ(refs(cache), original ? Numbers({0, -1, 0, 0}) : Numbers({0, 0, 1, 0}));
    EXPECT_EQ(queue(cache), original ? Numbers({2, 1, 3}) : Numbers({1, 3}));
    EXPECT_EQ(cache.code(Take{2}), original ? "precondition" : "ok") << "at its turn";
  });
  in_each_pool(blocks_of(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.values(Take{2}).blocks, Numbers({1, 2}));
    EXPECT_EQ(cache.code(Release{{2, 2}}), original ? "ok" : "precondition") << "twice in a list";
    EXPECT_EQ(refs(cache), original ? Numbers({0, 1, -1, 0}) : Numbers({0, 1, 1, 0}));
  });
}

TEST(PrefixBlocksRules, EvictingBlocksThatThereAreNotPX36PX47PX48) {
  in_each_pool(blocks_of(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(begun(cache, 0, "abcdef"), "[1, 2, 3]");
    EXPECT_EQ(cache.code(EvictBlocks{{2, -1}}), original ? "ok" : "out_of_range");
    EXPECT_EQ(carried(cache), original ? "1:0" : "1:0 2:1 3:2") << "counted from the end";
    EXPECT_EQ(cache.code(EvictBlocks{{-4}}), original ? "ok" : "out_of_range");
    EXPECT_EQ(cache.code(EvictBlocks{{-5}}), original ? "precondition" : "out_of_range");
  });
  in_each_pool(blocks_of(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(begun(cache, 0, "ab"), "[1]");
    EXPECT_EQ(cache.code(EvictBlocks{{1, 4}}), original ? "precondition" : "out_of_range");
    if (!original) {
      EXPECT_EQ(carried(cache), "1:0");
    }
  });
}

TEST(PrefixBlocksRules, AResetWaitsForAllBlocksPX37PX41) {
  in_each_pool(blocks_of(5), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcd"), "[1, 2]");
    EXPECT_FALSE(cache.values(ResetBlocks{}).done);
    EXPECT_EQ(found_of(cache, "abcde"), "4 [1, 2]");
    EXPECT_FALSE(cache.values(ShowStatistics{}).reset);
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_TRUE(cache.values(ResetBlocks{}).done);
    EXPECT_EQ(carried(cache), "");
    EXPECT_EQ(found_of(cache, "abcde"), "0 []");
    EXPECT_EQ(queue(cache), Numbers({3, 4, 2, 1})) << "the queue stays";
    EXPECT_TRUE(cache.values(ShowStatistics{}).reset);
    EXPECT_FALSE(cache.values(ShowStatistics{}).reset);
  });
}

}  // namespace
}  // namespace kvo::prefix
