// Single rules of contract `views`, one by one.
#include <thread>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/views/operations.hpp"

namespace kvo::views {
namespace {

using Seen = std::vector<float>;

// Two layers of two heads of one element, blocks of two tokens, values the keys again.
Config small() {
  return {.num_layers = 2,
          .block_size = 2,
          .num_kv_heads = 2,
          .head_dim = 1,
          .max_seq_len = 8,
          .blocks = 8};
}

Append rows(std::int64_t layer, float first, std::int64_t tokens, std::int64_t cache = 0) {
  const Tensor given = counting({tokens, 2}, first);
  return {.cache = cache, .layer = layer, .k = given, .v = given};
}

// The keys that views show, one behind the other.
Seen keys(const std::vector<ShownView>& views) {
  Seen all;
  for (const ShownView& view : views) {
    const Seen some = elements_of(view.k);
    all.insert(all.end(), some.begin(), some.end());
    EXPECT_EQ(view.k.shape[0], view.length);
    EXPECT_EQ(elements_of(view.v), some);
  }
  return all;
}

// Each subject of the kind keeps each rule.
class ViewsRules : public testing::TestWithParam<const Subject*> {
 protected:
  static RulesCase fresh(Config config = small()) {
    RulesCase made(*GetParam(), Profile::kDocumented, Record::of(std::move(config)));
    EXPECT_EQ(made.code(New{}), "ok");
    return made;
  }
  static Seen held(RulesCase& views, std::int64_t layer, std::int64_t cache = 0) {
    return keys(views.values(ShowViews{cache, layer}).views);
  }
  static std::int64_t length(RulesCase& views) { return views.values(SeqLen{}).n; }
  static std::int64_t free_blocks(RulesCase& views) { return views.values(FreeBlocks{}).n; }
  // The same rows to both layers, and a commit of `counted` of them.
  static void step(RulesCase& views, float first, std::int64_t tokens, std::int64_t counted) {
    EXPECT_EQ(views.code(rows(0, first, tokens)), "ok");
    EXPECT_EQ(views.code(rows(1, first + 100, tokens)), "ok");
    EXPECT_EQ(views.code(Commit{0, counted}), "ok");
  }
};

TEST_P(ViewsRules, OnlyACommitCountsWhatWasAppendedMK1MK2MK3MK16) {
  RulesCase views = fresh();
  EXPECT_EQ(views.values(rows(1, 1, 3)).start, 0);
  EXPECT_EQ(length(views), 0);
  EXPECT_EQ(views.values(rows(0, 11, 3)).start, 0) << "each layer sees the same start";
  EXPECT_EQ(views.code(Commit{0, 3}), "ok");
  EXPECT_EQ(length(views), 3);
  EXPECT_EQ(views.values(rows(0, 21, 1)).start, 3);
}

TEST_P(ViewsRules, RowsMustBeTokensTimesChannelsMK10) {
  RulesCase views = fresh();
  Append wrong = rows(0, 1, 2);
  wrong.v = counting({1, 2}, 1);
  EXPECT_EQ(views.code(wrong), "bad_shape");
  wrong.k = wrong.v = counting({2, 2, 1}, 1);
  EXPECT_EQ(views.code(wrong), "bad_shape");
  wrong.k = wrong.v = counting({2, 3}, 1);
  EXPECT_EQ(views.code(wrong), "bad_shape");
  EXPECT_EQ(held(views, 0), Seen());
  EXPECT_EQ(free_blocks(views), 8);
}

TEST_P(ViewsRules, ASecondAppendReplacesWhatIsPendingMK11) {
  RulesCase views = fresh();
  EXPECT_EQ(views.code(rows(0, 1, 3)), "ok");
  EXPECT_EQ(views.values(rows(0, 11, 1)).start, 0);
  EXPECT_EQ(held(views, 0), Seen({11, 12}));
  EXPECT_EQ(free_blocks(views), 7);
  Config stacks = small();
  stacks.append_stacks = true;
  RulesCase stacked = fresh(stacks);
  EXPECT_EQ(stacked.code(rows(0, 1, 1)), "ok");
  EXPECT_EQ(stacked.values(rows(0, 11, 1)).start, 1);
  EXPECT_EQ(held(stacked, 0), Seen({1, 2, 11, 12}));
}

TEST_P(ViewsRules, WhatDoesNotFitWritesNothingMK12MK13) {
  Config config = small();
  config.blocks = 3;
  RulesCase views = fresh(config);
  EXPECT_EQ(views.code(rows(0, 1, 9)), "full");
  EXPECT_EQ(views.code(rows(0, 1, 8)), "exhausted") << "four blocks";
  EXPECT_EQ(free_blocks(views), 3);
  EXPECT_EQ(views.code(rows(0, 1, 4)), "ok");
  EXPECT_EQ(views.code(rows(1, 1, 4)), "exhausted") << "two blocks, and one is left";
  EXPECT_EQ(free_blocks(views), 1);
  EXPECT_EQ(views.code(rows(0, 1, 9)), "full");
  EXPECT_EQ(held(views, 0), Seen({1, 2, 3, 4, 5, 6, 7, 8})) << "what was pending still is";
}

TEST_P(ViewsRules, LayersThatAreNotThereMK14) {
  RulesCase views = fresh();
  for (const std::int64_t layer : {-1, 2}) {
    EXPECT_EQ(views.code(rows(layer, 1, 1)), "out_of_range");
    EXPECT_EQ(views.code(ContiguousKv{0, layer, 0, 2}), "out_of_range");
    EXPECT_TRUE(views.values(ShowViews{0, layer}).views.empty());
    EXPECT_TRUE(views.values(ShowPacked{0, layer}).views.empty());
  }
}

TEST_P(ViewsRules, AnAppendReturnsViewsOfItsTokensMK15) {
  RulesCase views = fresh();
  step(views, 1, 1, 1);
  const auto seen = views.values(rows(0, 11, 4)).views;
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(keys(seen), Seen({11, 12, 13, 14, 15, 16, 17, 18}));
  EXPECT_EQ(seen[0].start, 1);
  EXPECT_EQ(seen[0].length, 1);
  EXPECT_EQ(seen[1].start, 2);
  EXPECT_EQ(seen[2].length, 1);
  EXPECT_TRUE(views.values(rows(0, 1, 0)).views.empty());
  Config blocks = small();
  blocks.append_views_blocks = true;
  RulesCase whole = fresh(blocks);
  step(whole, 1, 1, 1);
  EXPECT_EQ(keys(whole.values(rows(0, 11, 1)).views), Seen({1, 2, 11, 12}));
}

TEST_P(ViewsRules, EarlierViewsShowWhatIsWrittenMK15MK24) {
  RulesCase views = fresh();
  Append kept = rows(0, 1, 2);
  kept.keep = true;
  EXPECT_EQ(views.values(kept).handle, 1);
  EXPECT_EQ(views.code(rows(0, 11, 3)), "ok");
  EXPECT_EQ(keys(views.values(Reread{1}).views), Seen({11, 12, 13, 14}));
  EXPECT_EQ(views.code(rows(0, 21, 1)), "ok");
  EXPECT_TRUE(views.values(Reread{1}).stale) << "the layer holds one token now";
  EXPECT_EQ(views.code(rows(0, 31, 2)), "ok");
  EXPECT_TRUE(views.values(Reread{1}).stale) << "for good";
}

TEST_P(ViewsRules, ACommitDropsWhatItDoesNotCountMK17) {
  RulesCase views = fresh();
  step(views, 1, 3, 1);
  EXPECT_EQ(held(views, 0), Seen({1, 2}));
  EXPECT_EQ(free_blocks(views), 6);
  step(views, 11, 2, 0);
  EXPECT_EQ(length(views), 1);
  EXPECT_EQ(held(views, 1), Seen({101, 102}));
  Config keeps = small();
  keeps.commit_keeps_rest = true;
  RulesCase rest = fresh(keeps);
  step(rest, 1, 3, 1);
  EXPECT_EQ(length(rest), 1);
  EXPECT_EQ(held(rest, 0), Seen({1, 2, 3, 4, 5, 6}));
}

TEST_P(ViewsRules, ACommitOfTokensThatAreNotThereMK18) {
  RulesCase views = fresh();
  EXPECT_EQ(views.code(rows(0, 1, 2)), "ok");
  EXPECT_EQ(views.code(Commit{0, 1}), "precondition") << "layer 1 has none";
  Config robust = small();
  robust.robustness = true;
  RulesCase marked = fresh(robust);
  step(marked, 1, 2, 2);
  EXPECT_EQ(marked.code(rows(0, 1, 2)), "ok");
  EXPECT_EQ(marked.code(Commit{0, 1}), "bad_position");
  EXPECT_EQ(marked.code(Commit{0, -1}), "bad_position");
  EXPECT_EQ(length(marked), 2);
}

TEST_P(ViewsRules, ViewsShowPendingTokensBlockByBlockMK5MK19) {
  RulesCase views = fresh();
  step(views, 1, 3, 3);
  EXPECT_EQ(views.code(rows(0, 11, 2)), "ok");
  const auto seen = views.values(ShowViews{0, 0}).views;
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[1].start, 2);
  EXPECT_EQ(seen[2].length, 1);
  EXPECT_EQ(keys(seen), Seen({1, 2, 3, 4, 5, 6, 11, 12, 13, 14}));
  Config committed = small();
  committed.views_committed_only = true;
  RulesCase without = fresh(committed);
  step(without, 1, 1, 1);
  EXPECT_EQ(without.code(rows(0, 11, 2)), "ok");
  EXPECT_EQ(held(without, 0), Seen({1, 2}));
}

TEST_P(ViewsRules, PackedViewsAreHeadByHeadMK6MK20MK21) {
  for (const PackedStride stride : {PackedStride::kBlockSize, PackedStride::kLength}) {
    Config config = small();
    config.packed_stride = stride;
    RulesCase views = fresh(config);
    for (const std::int64_t tokens : {3, 4}) {
      EXPECT_EQ(views.code(rows(0, 1, tokens)), "ok");
      const auto seen = views.values(ShowPacked{0, 0}).views;
      ASSERT_EQ(seen.size(), 2U);
      EXPECT_EQ(elements_of(seen[0].k), Seen({1, 3, 2, 4}));
      EXPECT_EQ(seen[0].block_size, 2);
      EXPECT_EQ(seen[0].num_kv_heads, 2);
      EXPECT_EQ(seen[1].start, 2);
      EXPECT_EQ(elements_of(seen[1].v), tokens == 3 ? Seen({5, 6}) : Seen({5, 7, 6, 8}));
    }
  }
}

TEST_P(ViewsRules, OnePieceWithinABlockMK4MK22) {
  RulesCase views = fresh();
  step(views, 1, 3, 3);
  const auto offered = views.values(ContiguousKv{0, 0, 2, 2});
  EXPECT_FALSE(offered.ok.has_value()) << "that is left to the cache";
  EXPECT_EQ(elements_of(offered.k), Seen({1, 2, 3, 4}));
  EXPECT_EQ(views.values(ContiguousKv{0, 0, 0, 2}).k->elements(), 0);
  const auto two_blocks = views.values(ContiguousKv{0, 0, 3, 2});
  EXPECT_EQ(two_blocks.ok, Nullable<bool>(false));
  EXPECT_FALSE(two_blocks.k.has_value());
  EXPECT_EQ(views.code(ContiguousKv{0, 0, 2, 3}), "bad_shape");
  EXPECT_EQ(views.code(ContiguousKv{0, 0, 4, 2}), "out_of_range");
  EXPECT_EQ(views.code(ContiguousKv{0, 0, -1, 2}), "out_of_range");
}

TEST_P(ViewsRules, ABlockAsLongAsTheSequenceIsOnePieceMK9) {
  Config config = small();
  config.block_size = config.max_seq_len;
  RulesCase views = fresh(config);
  step(views, 1, 5, 5);
  EXPECT_EQ(views.code(rows(0, 11, 3)), "ok");
  EXPECT_EQ(elements_of(views.values(ContiguousKv{0, 0, 8, 2}).k), held(views, 0));
  EXPECT_EQ(views.values(ShowViews{0, 0}).views.size(), 1U);
}

TEST_P(ViewsRules, TruncateKeepsWhatStandsBeforeMK8MK23MK25) {
  RulesCase views = fresh();
  step(views, 1, 5, 5);
  EXPECT_EQ(free_blocks(views), 2);
  EXPECT_EQ(views.code(rows(0, 51, 2)), "ok");
  EXPECT_EQ(views.code(Truncate{0, 9}), "ok");
  EXPECT_EQ(length(views), 5) << "it never grows";
  EXPECT_EQ(held(views, 0), Seen({1, 2, 3, 4, 5, 6, 7, 8, 9, 10})) << "pending tokens are gone";
  EXPECT_EQ(views.code(Truncate{0, 3}), "ok");
  EXPECT_EQ(free_blocks(views), 4);
  EXPECT_EQ(held(views, 0), Seen({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(views.values(rows(0, 11, 1)).start, 3);
  EXPECT_EQ(held(views, 0), Seen({1, 2, 3, 4, 5, 6, 11, 12}));
  EXPECT_EQ(views.code(Truncate{0, -2}), "ok");
  EXPECT_EQ(length(views), 0);
  EXPECT_EQ(free_blocks(views), 8);
}

TEST_P(ViewsRules, WhereLayersLieMK7MK26MK27) {
  for (const bool all : {false, true}) {
    Config config = small();
    config.devices = std::vector<std::int64_t>{all ? 1 : -1, 1};
    RulesCase views = fresh(config);
    EXPECT_EQ(views.values(MaxSeqLen{}).n, 8);
    EXPECT_EQ(views.values(IsOnGpu{}).on_gpu,
              all ? Nullable<bool>(true) : Nullable<bool>(std::nullopt));
    const auto place = views.values(LayerDevice{0, 1});
    EXPECT_EQ(place.device, Device::kGpu);
    EXPECT_EQ(place.gpu, 1);
    const auto seen = views.values(rows(1, 1, 1)).views;
    EXPECT_EQ(seen[0].device, Device::kGpu);
    EXPECT_EQ(seen[0].gpu, 1);
    EXPECT_TRUE(views.values(ShowPacked{0, 1}).views.empty()) << "MK-20";
    EXPECT_EQ(views.code(LayerDevice{0, 2}), "precondition") << "MK-14";
  }
}

TEST_P(ViewsRules, AfterFreeNothingIsLeftMK28MK26) {
  RulesCase views = fresh();
  step(views, 1, 3, 3);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(views.code(Free{}), "ok");
    EXPECT_EQ(length(views), 0);
    EXPECT_EQ(views.values(MaxSeqLen{}).n, 8);
    EXPECT_EQ(held(views, 0), Seen());
    EXPECT_TRUE(views.values(ShowPacked{0, 0}).views.empty());
    EXPECT_EQ(views.code(rows(0, 1, 1)), "closed");
    EXPECT_EQ(views.code(ContiguousKv{0, 0, 0, 2}), "closed");
    EXPECT_EQ(views.code(Commit{0, 3}), "ok");
    EXPECT_EQ(views.code(Truncate{0, 1}), "ok");
    EXPECT_EQ(free_blocks(views), 8);
  }
}

TEST_P(ViewsRules, EachHeadIsStoredByItselfMK29) {
  // Heads of 40: a second group of 8, whose largest is not that of the next head.
  constexpr std::int64_t kHeads = 2;
  constexpr std::int64_t kDim = 40;
  std::vector<float> cells;
  for (std::int64_t i = 0; i < 2 * kHeads * kDim; ++i)
    cells.push_back(static_cast<float>(i * i) / 3 - 700);
  const Tensor given = tensor_of({2, kHeads * kDim}, cells);
  for (const StorageFormat format :
       {StorageFormat(), StorageFormat{StorageType::kF16}, StorageFormat{StorageType::kBf16},
        StorageFormat{StorageType::kF8E4m3}, StorageFormat{StorageType::kF8E5m2},
        StorageFormat{StorageType::kQ8}, StorageFormat{StorageType::kQ4, 64},
        StorageFormat{StorageType::kQ8, 32, true}, StorageFormat{StorageType::kQ4, 128, true}}) {
    Config config = small();
    config.num_kv_heads = kHeads;
    config.head_dim = kDim;
    config.rows.storage = format.type;
    config.rows.group = format.group;
    config.rows.offset = format.offset;
    Tensor want = make_tensor({2, kHeads * kDim}, dtype_of(format.type));
    for (std::size_t row = 0; row < 4; ++row)
      show_stored(format, given.floats().subspan(row * kDim, kDim),
                  &want.bytes[row * kDim * dtype_bytes(want.dtype)]);
    RulesCase views(*GetParam(), Profile::kDocumented, Record::of(config));
    const std::string made = views.code(New{});
    if (made == "not_supported") continue;  // on a device
    EXPECT_EQ(made, "ok");
    EXPECT_EQ(views.values(Append{0, 0, given, given}).views[0].k, want);
    const auto packed = views.values(ShowPacked{0, 0}).views;
    Seen by_head;
    for (const std::size_t row : {0U, 2U, 1U, 3U})
      for (std::size_t i = row * kDim; i < (row + 1) * kDim; ++i)
        by_head.push_back(load_element(want.dtype, &want.bytes[i * dtype_bytes(want.dtype)]));
    EXPECT_EQ(elements_of(packed[0].k), by_head);
    EXPECT_EQ(elements_of(packed[0].v), by_head);
  }
}

TEST_P(ViewsRules, RefusesAStorageThatThereIsNot) {
  Config config = small();
  config.rows.storage = StorageType::kQ8;
  config.rows.group = 48;
  EXPECT_EQ(RulesCase(*GetParam(), Profile::kDocumented, Record::of(config)).code(New{0}),
            "out_of_range");
  config.rows.storage = StorageType::kF16;
  config.rows.group = std::nullopt;
  config.rows.offset = true;
  EXPECT_EQ(RulesCase(*GetParam(), Profile::kDocumented, Record::of(config)).code(New{0}),
            "out_of_range");
}

TEST_P(ViewsRules, AForkHoldsWholeBlocksTogetherMK31) {
  RulesCase views = fresh();
  step(views, 1, 3, 3);
  EXPECT_EQ(free_blocks(views), 4);
  EXPECT_EQ(views.code(Fork{1, 0, 4}), "bad_position");
  EXPECT_EQ(views.code(Fork{1, 0, 3}), "ok");
  EXPECT_EQ(free_blocks(views), 2) << "of each layer, the block that is not whole is copied";
  EXPECT_EQ(views.code(Truncate{1, 1}), "ok");
  EXPECT_EQ(free_blocks(views), 4);
  EXPECT_EQ(views.code(rows(0, 51, 1, 1)), "ok");
  EXPECT_EQ(free_blocks(views), 3) << "it is written, so it is no longer shared";
  EXPECT_EQ(held(views, 0, 1), Seen({1, 2, 51, 52}));
  EXPECT_EQ(held(views, 0), Seen({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(views.code(Free{0}), "ok");
  EXPECT_EQ(held(views, 1, 1), Seen({101, 102}));
}

TEST_P(ViewsRules, WhatOthersWriteIntoBlocksThatCameBackDoesNotShowMK24) {
  Config config = small();
  config.blocks = 6;
  RulesCase views = fresh(config);
  EXPECT_EQ(views.code(New{1}), "ok");
  step(views, 1, 5, 5);
  EXPECT_EQ(views.values(ShowViews{0, 0, true}).handle, 1);
  EXPECT_EQ(views.code(rows(0, 51, 4, 1)), "exhausted");
  EXPECT_EQ(views.code(Truncate{0, 3}), "ok");
  Append kept = rows(0, 51, 4, 1);
  kept.keep = true;
  EXPECT_EQ(views.values(kept).handle, 2) << "the blocks that came back";
  EXPECT_TRUE(views.values(Reread{1}).stale);
  EXPECT_EQ(held(views, 0), Seen({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(held(views, 1), Seen({101, 102, 103, 104, 105, 106}));
  EXPECT_EQ(views.code(rows(0, 11, 1)), "ok");
  EXPECT_EQ(keys(views.values(Reread{2}).views), Seen({51, 52, 53, 54, 55, 56, 57, 58}));
}

// One thread at a time need not always be the same.
TEST_P(ViewsRules, ACacheGoesFromThreadToThreadMK30) {
  RulesCase views = fresh();
  for (const float first : {1.0F, 11.0F, 21.0F})
    std::thread([&] { step(views, first, 1, 1); }).join();
  EXPECT_EQ(held(views, 0), Seen({1, 2, 11, 12, 21, 22}));
  EXPECT_EQ(free_blocks(views), 4);
}

TEST_P(ViewsRules, BlocksOfAllSizesAndLayersDoNotOverlapMK19) {
  for (const std::int64_t size : {1, 2, 16, 64}) {
    Config config = small();
    config.block_size = size;
    config.max_seq_len = 130;
    config.blocks = 260;
    RulesCase views = fresh(config);
    Seen want;
    for (std::int64_t tokens = 0; tokens < 130; tokens += 13) {
      step(views, static_cast<float>(want.size()), 13, 13);
      for (int i = 0; i < 26; ++i) want.push_back(static_cast<float>(want.size()));
    }
    EXPECT_EQ(held(views, 0), want);
    for (float& cell : want) cell += 100;
    EXPECT_EQ(held(views, 1), want);
  }
}

INSTANTIATE_TEST_SUITE_P(Views, ViewsRules,
                         testing::ValuesIn(contracts().subjects_without_card(paged_kind())),
                         variant_name);

TEST(ViewsSizes, ThatCannotBeAreRefused) {
  for (const Config& config :
       {Config{.num_layers = 0}, Config{.block_size = 0}, Config{.num_kv_heads = -1},
        Config{.head_dim = std::int64_t{1} << 40U}, Config{.max_seq_len = -1}, Config{.blocks = -1},
        Config{.num_layers = 2, .devices = std::vector<std::int64_t>{0}}}) {
    RulesCase made(contracts().reference_of(paged_kind()), Profile::kOriginal, Record::of(config));
    EXPECT_EQ(made.code(New{}), "out_of_range");
    EXPECT_EQ(made.code(SeqLen{}), "precondition") << "there is no cache";
  }
}

}  // namespace
}  // namespace kvo::views
