// Single rules of prefix.blocks, in both profiles: keys, pool and slots under full attention.
// A block is two tokens; a key is numbered when a request first shows it.
#include "properties/prefix/rules_case.hpp"

namespace kvo::prefix {
namespace {

BlocksConfig blocks_of(std::int64_t num_blocks) {
  return {.num_blocks = num_blocks, .block_size = 2, .max_model_len = 64};
}

template <class Check>
void in_each_pool(const BlocksConfig& config, Check&& check) {
  in_each(blocks_kind(), Record::of(config), std::forward<Check>(check));
}

// Makes a request; its keys.
Numbers keys_made(RulesCase& cache, std::int64_t request, std::string_view text) {
  return cache.values(MakeRequest{.request = request, .tokens = tokens_of(text)}).keys;
}

// "[3, 4]", "[3, 4] evicts [3]", or the code of the error.
std::string allotted(RulesCase& cache, Allocate op) {
  const Observation seen = cache.run(std::move(op));
  if (seen.error) return code_of(seen);
  const auto& given = seen.as<AllottedBlocks>();
  return list_text(given.blocks) +
         (given.evicted.empty() ? "" : " evicts " + list_text(given.evicted));
}

// The same of a number of new tokens, and nothing else.
std::string grown(RulesCase& cache, std::int64_t request, std::int64_t count) {
  return allotted(cache, {.request = request, .tokens = count});
}

// Makes a request and hands out the slots of all its tokens, without a lookup.
std::string begun(RulesCase& cache, std::int64_t request, std::string_view text) {
  (void)keys_made(cache, request, text);
  return grown(cache, request, std::ssize(text));
}

// "4 [1, 2]": length and blocks of a hit, or the code of the error.
std::string found(RulesCase& cache, std::int64_t request,
                  std::optional<std::int64_t> max_length = std::nullopt) {
  const Observation seen = cache.run(MatchBlocks{.request = request, .max_length = max_length});
  if (seen.error) return code_of(seen);
  const auto& hit = seen.as<MatchBlocks::Returns>();
  return fmt::format("{} {}", hit.length, hit.blocks);
}

// What a fresh request of that text would hit.
std::string found_of(RulesCase& cache, std::string_view text) {
  (void)keys_made(cache, 99, text);
  return found(cache, 99);
}

Numbers queue(RulesCase& cache) {
  return cache.values(ShowBlocks{}).queue;
}

Numbers refs(RulesCase& cache) {
  return cache.values(ShowBlocks{}).refs;
}

Numbers block_table(RulesCase& cache, std::int64_t request) {
  return cache.values(ShowTable{.request = request}).blocks;
}

// "1:0 2:1": the blocks that carry a key.
std::string carried(RulesCase& cache) {
  std::string text;
  const auto keys = cache.values(ShowBlocks{}).keys;
  for (std::size_t block = 0; block < keys.size(); ++block)
    if (keys[block].value)
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ", block, *keys[block].value);
  return text;
}

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

TEST(PrefixBlocksRules, OneOfSeveralHoldersIsFoundPX16PX24PX31) {
  in_each_pool(blocks_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(begun(cache, 0, "abcd"), "[1, 2]");
    EXPECT_EQ(begun(cache, 1, "abcd"), "[3, 4]");
    EXPECT_EQ(carried(cache), "1:0 2:1 3:0 4:1") << "nothing is merged";
    EXPECT_EQ(block_table(cache, 1), Numbers({3, 4}));
    EXPECT_EQ(found_of(cache, "abcde"), "4 [1, 2]") << "the first";
    EXPECT_EQ(cache.code(FreeRequest{0}), "ok");
    EXPECT_EQ(found_of(cache, "abcde"), "4 [1, 2]") << "also where the second is in use";
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

}  // namespace
}  // namespace kvo::prefix
