// Single rules of contract `snapshot`, in both profiles.
#include <algorithm>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/snapshot/trie_operations.hpp"

namespace kvo::snapshot {
namespace {

using SeenRows = std::vector<float>;

constexpr std::array kBothProfiles{Profile::kOriginal, Profile::kDocumented};

// One head of one element; values are the keys again.
Update tokens(float first, std::int64_t count, DType type = DType::kF32) {
  Tensor rows = counting({1, 1, count, 1}, first);
  if (type != DType::kF32) rows = make_tensor(rows.shape, type);
  return {rows, rows};
}

// A case of the reference with a fresh cache.
RulesCase fresh(const CacheKind& kind, Profile profile, Record config = {}) {
  RulesCase made(contracts().reference_of(kind), profile, std::move(config));
  EXPECT_EQ(made.code(New{}), "ok");
  return made;
}

RulesCase ring(Profile profile, std::int64_t window) {
  return fresh(rotating_kind(), profile, Record::of(RowsConfig{.max_size = window}));
}

SeenRows state_of(RulesCase& cache) {
  const auto state = cache.values(ShowState{}).state;
  return state.has_value() ? elements_of((*state)[0].value) : SeenRows();
}

// ---- kv ----

TEST(SnapshotRules, ARestoreDropsWhatStandsBehindTheSnapshotMR14) {
  for (const Profile profile : kBothProfiles) {
    RulesCase cache = fresh(kv_kind(), profile);
    EXPECT_EQ(cache.code(tokens(1, 4)), "ok");
    EXPECT_EQ(*cache.values(Take{2}).handle, 1);
    EXPECT_EQ(cache.code(tokens(50, 3)), "ok");
    EXPECT_TRUE(cache.values(Restore{1, 3}).ok);
    EXPECT_EQ(state_of(cache), SeenRows({1, 2, 3}));
    EXPECT_FALSE(cache.values(Restore{1, 5}).ok) << "beyond its end";
    const bool reached = cache.values(Restore{1, 1}).ok;
    EXPECT_EQ(reached, profile == Profile::kOriginal) << "before its begin";
  }
}

TEST(SnapshotRules, OnlyWhatAdjoinsIsMergedMR15) {
  for (const Profile profile : kBothProfiles) {
    const bool original = profile == Profile::kOriginal;
    RulesCase cache = fresh(kv_kind(), profile);
    EXPECT_EQ(cache.code(tokens(1, 4)), "ok");
    (void)cache.values(Take{0});
    (void)cache.values(Take{3});
    EXPECT_EQ(cache.code(Merge{1, 2}), original ? "ok" : "bad_position");
    (void)cache.values(Take{1});
    const std::int64_t last = original ? 4 : 3;
    const Numbered alone = cache.values(Merge{last, std::nullopt});
    EXPECT_EQ(alone.handle.has_value(), !original) << "with nothing it is lost, or stays";
    EXPECT_EQ(cache.code(Reread{last}), original ? "precondition" : "ok");
  }
}

TEST(SnapshotRules, SplitClosesWhatItTakesApartMR16MR4) {
  for (const Profile profile : kBothProfiles) {
    RulesCase cache = fresh(kv_kind(), profile);
    EXPECT_EQ(cache.code(tokens(1, 3)), "ok");
    (void)cache.values(Take{0});
    const Split::Returns halves = cache.values(Split{1, 1});
    EXPECT_EQ(elements_of(halves.parent->k), SeenRows({1}));
    EXPECT_EQ(elements_of(halves.child->k), SeenRows({2, 3}));
    const std::string closed = profile == Profile::kOriginal ? "precondition" : "closed";
    EXPECT_EQ(cache.code(Close{1}), closed);
    EXPECT_EQ(cache.code(Restore{1, 1}), closed);
    const Split::Returns edge = cache.values(Split{2, 5});
    EXPECT_EQ(*edge.parent->handle, 2) << "the same object";
    EXPECT_FALSE(edge.child.has_value());
  }
}

TEST(SnapshotRules, TheFirstRowsGiveTheTypeMR10) {
  for (const Profile profile : kBothProfiles) {
    RulesCase cache = fresh(kv_kind(), profile);
    EXPECT_EQ(cache.code(tokens(1, 2, DType::kF16)), "ok");
    EXPECT_EQ(cache.code(tokens(3, 1)), profile == Profile::kOriginal ? "ok" : "bad_shape");
    EXPECT_EQ(cache.code(tokens(5, 1, DType::kF16)), "ok");
    const auto state = cache.values(ShowState{}).state;
    EXPECT_EQ((*state)[0]->dtype, DType::kF16) << "nothing has grown";
  }
}

// ---- rotating ----

TEST(SnapshotRules, AChunkOnAWrappedRingKeepsTheWindowMR21) {
  for (const Profile profile : kBothProfiles) {
    RulesCase cache = ring(profile, 4);
    for (float token = 1; token <= 6; ++token) EXPECT_EQ(cache.code(tokens(token, 1)), "ok");
    const auto seen = elements_of(cache.values(tokens(7, 2)).k);
    EXPECT_EQ(seen,
              profile == Profile::kOriginal ? SeenRows({5, 6, 7, 8}) : SeenRows({4, 5, 6, 7, 8}));
  }
}

TEST(SnapshotRules, AWindowSeesItsNewestTokensInASlotEachMR22) {
  for (const Profile profile : kBothProfiles)
    for (const std::int64_t window : {1, 2, 3, 7}) {
      RulesCase cache = ring(profile, window);
      for (std::int64_t token = 1; token <= 3 * window + 1; ++token) {
        auto seen = elements_of(cache.values(tokens(static_cast<float>(token), 1)).k);
        std::ranges::sort(seen);
        SeenRows want;
        for (std::int64_t one = std::max<std::int64_t>(1, token - window + 1); one <= token; ++one)
          want.push_back(static_cast<float>(one));
        EXPECT_EQ(seen, want) << "window " << window << ", token " << token;
      }
    }
}

TEST(SnapshotRules, AWrappedRingIsRestoredWholeMR26MR27) {
  for (const Profile profile : kBothProfiles) {
    RulesCase cache = ring(profile, 3);
    for (float token = 1; token <= 5; ++token) EXPECT_EQ(cache.code(tokens(token, 1)), "ok");
    (void)cache.values(Take{0});
    EXPECT_FALSE(cache.values(Restore{std::nullopt, 4}).ok);
    EXPECT_EQ(cache.code(tokens(9, 1)), "ok");
    EXPECT_FALSE(cache.values(Restore{1, 4}).ok);
    EXPECT_TRUE(cache.values(Restore{1, 5}).ok);
    EXPECT_EQ(state_of(cache), SeenRows({4, 5, 3}));
    EXPECT_EQ(cache.code(New{8}), "ok");
    EXPECT_EQ(cache.values(Restore{1, 5}).ok, profile == Profile::kOriginal) << "another window";
  }
}

TEST(SnapshotRules, AReturnedChunkIsLiveInTheOriginalOnlyMR23) {
  for (const Profile profile : kBothProfiles) {
    RulesCase cache = ring(profile, 3);
    Update chunk = tokens(1, 2);
    chunk.keep = true;
    EXPECT_EQ(cache.values(chunk).handle, 1);
    EXPECT_EQ(cache.code(tokens(3, 1)), "ok");
    EXPECT_EQ(elements_of(cache.values(Reread{1}).k),
              profile == Profile::kOriginal ? SeenRows({1, 2, 3}) : SeenRows({1, 2}));
  }
}

// ---- storage ----

const std::array kNarrow{
    StorageFormat{StorageType::kF16},          StorageFormat{StorageType::kBf16},
    StorageFormat{StorageType::kF8E4m3},       StorageFormat{StorageType::kF8E5m2},
    StorageFormat{StorageType::kQ8},           StorageFormat{StorageType::kQ4, 64},
    StorageFormat{StorageType::kQ8, 32, true}, StorageFormat{StorageType::kQ4, 128, true}};

RowsConfig stored_as(const StorageFormat& format, std::int64_t window = 3) {
  return {.max_size = window,
          .rows = {.storage = format.type, .group = format.group, .offset = format.offset}};
}

// Two heads of 40 elements, none of which is like another.
Tensor wide_rows(std::int64_t count, float first) {
  Tensor rows = counting({1, 2, count, 40}, first);
  for (float& cell : rows.floats()) cell = cell * 1.37F - 60;
  return rows;
}

// What a cache shows that stores them row by row.
Tensor stored_and_shown(const StorageFormat& format, const Tensor& rows) {
  Tensor shown = make_tensor(rows.shape, dtype_of(format.type));
  for (std::size_t at = 0; at < rows.floats().size(); at += 40)
    show_stored(format, rows.floats().subspan(at, 40),
                shown.bytes.data() + at * dtype_bytes(shown.dtype));
  return shown;
}

TEST(SnapshotRules, RowsAreKeptAsTheConfigStoresThem) {
  for (const Profile profile : kBothProfiles)
    for (const StorageFormat& format : kNarrow)
      for (const CacheKind* kind : {&kv_kind(), &rotating_kind()}) {
        RulesCase cache = fresh(*kind, profile, Record::of(stored_as(format)));
        const Tensor k = wide_rows(3, 1);
        const Tensor v = wide_rows(3, 300);
        EXPECT_EQ(cache.values(Update{k, v}).k, stored_and_shown(format, k));
        EXPECT_EQ(*(*cache.values(ShowState{}).state)[1], stored_and_shown(format, v));
        const Numbered taken = cache.values(Take{0});
        EXPECT_EQ(*taken.k, stored_and_shown(format, k));
        EXPECT_EQ(*taken.size, 2 * 2 * 3 * static_cast<std::int64_t>(stored_bytes(format, 40)));
        EXPECT_EQ(cache.code(Free{}), "ok");
        EXPECT_TRUE(cache.values(Restore{1, 3}).ok);
        EXPECT_EQ(*(*cache.values(ShowState{}).state)[0], stored_and_shown(format, k));
      }
}

// 9 and -2.25 are in steps of 9 / 127 and -9 / 8, which are kept in f16.
TEST(SnapshotRules, CodesByHand) {
  const Tensor row = tensor_of({1, 1, 1, 2}, std::vector<float>{9, -2.25F});
  const auto shown = [&](const StorageFormat& format) {
    RulesCase cache = fresh(kv_kind(), Profile::kDocumented, Record::of(stored_as(format)));
    return elements_of(cache.values(Update{row, row}).k);
  };
  const float step = 0x1.224p-4F;
  EXPECT_EQ(shown({StorageType::kQ8}), SeenRows({127 * step, -32 * step}));
  EXPECT_EQ(shown({StorageType::kQ4}), SeenRows({9, -2.25F})) << "8 and -2 steps of 1.125";
  EXPECT_EQ(shown({StorageType::kQ4, 32, true}), SeenRows({9, -2.25F})) << "15 steps of 0.75";
}

TEST(SnapshotRules, ABadFormatIsRefusedWhenTheCacheIsMade) {
  using Format = StorageFormat;
  for (const Format& bad : {Format{StorageType::kQ8, 48}, Format{StorageType::kQ4, 0},
                            Format{StorageType::kF16, 64}, Format{StorageType::kF32, 32, true}}) {
    for (const CacheKind* kind : {&kv_kind(), &rotating_kind()}) {
      RulesCase cache(contracts().reference_of(*kind), Profile::kOriginal,
                      Record::of(stored_as(bad)));
      EXPECT_EQ(cache.code(New{}), "out_of_range");
      EXPECT_EQ(cache.code(tokens(1, 1)), "precondition") << "there is no cache";
    }
    RulesCase trie(contracts().reference_of(trie_kind()), Profile::kOriginal,
                   Record::of(TrieConfig{
                       .layers = {"kv"},
                       .rows = {.storage = bad.type, .group = bad.group, .offset = bad.offset}}));
    EXPECT_EQ(trie.code(NewTrie{}), "out_of_range");
  }
}

TEST(SnapshotRules, OnlyF32IsNarrowed) {
  for (const Profile profile : kBothProfiles)
    for (const CacheKind* kind : {&kv_kind(), &rotating_kind()}) {
      RulesCase cache = fresh(*kind, profile, Record::of(stored_as({StorageType::kF16})));
      const std::string refused = profile == Profile::kOriginal ? "precondition" : "bad_shape";
      EXPECT_EQ(cache.code(tokens(1, 2, DType::kF16)), refused);
      EXPECT_EQ(cache.code(tokens(1, 2)), "ok");
      EXPECT_EQ(cache.code(tokens(3, 1, DType::kBF16)), refused);
      EXPECT_EQ(cache.values(Offset{}).offset, 2) << "nothing has changed";
    }
}

// Two groups of a row of 33 elements take as many bytes as those of 34.
TEST(SnapshotRules, AsManyBytesOfCodesDoNotMakeRowsFitMRA6) {
  const StorageFormat format{StorageType::kQ4};
  ASSERT_EQ(stored_bytes(format, 33), stored_bytes(format, 34));
  for (const CacheKind* kind : {&kv_kind(), &rotating_kind()}) {
    RulesCase cache = fresh(*kind, Profile::kDocumented, Record::of(stored_as(format)));
    const Tensor row = counting({1, 1, 1, 33}, 1);
    const Tensor wider = counting({1, 1, 1, 34}, 1);
    EXPECT_EQ(cache.code(Update{row, row}), "ok");
    EXPECT_EQ(cache.code(Update{wider, wider}), "bad_shape");
  }
}

TEST(SnapshotRules, ATrieCountsTheBytesOfCodesMRA7) {
  RulesCase trie(contracts().reference_of(trie_kind()), Profile::kDocumented,
                 Record::of(TrieConfig{.layers = {"kv", "rotating:8", "recurrent"},
                                       .rows = {.storage = StorageType::kQ8, .offset = true}}));
  EXPECT_EQ(trie.code(NewTrie{}), "ok");
  EXPECT_EQ(trie.code(Begin{{1, 2, 3}}), "ok");
  EXPECT_EQ(trie.code(Feed{{1, 2, 3}}), "ok");
  EXPECT_EQ(trie.code(CloseSession{}), "ok");
  EXPECT_EQ(trie.code(Begin{{7}}), "ok");
  EXPECT_EQ(trie.values(ShowUsage{}).paged_out_bytes, 2 * 3 * 2 * 5 + 16)
      << "scale, offset and a code for each key and value, and a state of f32";
}

// ---- recurrent ----

TEST(SnapshotRules, AStateIsRestoredAtItsOwnOffsetOnlyMR47) {
  for (const Profile profile : kBothProfiles) {
    RulesCase cache = fresh(
        recurrent_kind(), profile,
        Record::of(RecurrentConfig{
            .conv_tail = 1, .conv_dim = 2, .num_v_heads = 1, .head_v_dim = 1, .head_k_dim = 1}));
    EXPECT_EQ(cache.code(ConvState{}), "ok");
    EXPECT_EQ(cache.code(SetConvState{counting({1, 1, 2}, 5)}), "ok");
    EXPECT_EQ(cache.values(Advance{3}).offset, 3);
    (void)cache.values(Take{0});
    EXPECT_EQ(cache.code(Free{}), "ok");
    EXPECT_FALSE(cache.values(Restore{1, 2}).ok);
    EXPECT_TRUE(cache.values(Restore{1, 3}).ok);
    EXPECT_EQ(elements_of(cache.values(ConvState{}).conv), SeenRows({5, 6}));
    EXPECT_EQ(cache.code(ConvState{2, StorageType::kF32}),
              profile == Profile::kOriginal ? "ok" : "bad_shape")
        << "another batch (MR-40)";
  }
}

// ---- trie ----

TEST(SnapshotRules, WhatWasFiledServesTheNextPromptMR66MR67MR71) {
  for (const Profile profile : kBothProfiles) {
    RulesCase trie(contracts().reference_of(trie_kind()), profile,
                   Record::of(TrieConfig{.layers = {"kv", "rotating:8"}}));
    EXPECT_EQ(trie.code(NewTrie{}), "ok");
    EXPECT_EQ(trie.values(Begin{{1, 2, 3}}).remaining, Tokens({1, 2, 3}));
    EXPECT_EQ(trie.code(Feed{{1, 2, 3}}), "ok");
    EXPECT_EQ(trie.code(CloseSession{}), "ok");
    EXPECT_EQ(trie.values(Begin{{1, 2, 3, 4}}).remaining, Tokens({4}));
    EXPECT_EQ(trie.code(CloseSession{}), "ok");
    EXPECT_EQ(trie.values(Begin{{1, 2, 3}}).remaining, Tokens({3})) << "one is always evaluated";
    EXPECT_EQ(trie.values(Find{{1, 2, 9}}).matched, 2);
  }
}

TEST(SnapshotRules, ALimitOfNothingKeepsNothingMR74) {
  for (const Profile profile : kBothProfiles) {
    RulesCase trie(contracts().reference_of(trie_kind()), profile,
                   Record::of(TrieConfig{.layers = {"kv"}, .limit_bytes = 0}));
    EXPECT_EQ(trie.code(NewTrie{}), "ok");
    EXPECT_EQ(trie.code(Begin{{1, 2}}), "ok");
    EXPECT_EQ(trie.code(Feed{{1, 2}}), "ok");
    EXPECT_EQ(trie.code(CloseSession{}), "ok");
    EXPECT_EQ(trie.code(Begin{{7}}), "ok");
    EXPECT_EQ(trie.values(Tree{}).paged_out_bytes, 0);
    EXPECT_EQ(trie.values(Begin{{1, 2, 3}}).remaining, Tokens({1, 2, 3}));
  }
}

TEST(SnapshotRules, UsageCountsWhatKeepingAndRestoringCameToMR75) {
  using Counts = std::array<std::int64_t, 3>;
  for (const Profile profile : kBothProfiles) {
    RulesCase trie(contracts().reference_of(trie_kind()), profile,
                   Record::of(TrieConfig{.layers = {"kv", "kv"}}));
    const auto usage = [&] {
      const auto seen = trie.values(ShowUsage{});
      return Counts{seen.paged_out_bytes, seen.evictions, seen.page_ins};
    };
    const auto session = [&](const Tokens& inputs) {
      const auto begun = trie.values(Begin{inputs});
      EXPECT_EQ(trie.code(Feed{begun.remaining}), "ok");
      EXPECT_EQ(trie.code(CloseSession{}), "ok");
    };
    EXPECT_EQ(trie.code(ShowUsage{}), "precondition");
    EXPECT_EQ(trie.code(NewTrie{}), "ok");
    EXPECT_EQ(usage(), Counts({0, 0, 0}));
    session({1, 2, 3});
    EXPECT_EQ(usage(), Counts({0, 0, 0})) << "what is live does not count";
    session({7, 8});
    EXPECT_EQ(usage(), Counts({2 * 24, 0, 0})) << "three tokens left the layers";
    session({1, 2, 3, 4});
    EXPECT_EQ(usage(), Counts({2 * 16, 0, 2})) << "they are back, and grew; two others left";
    EXPECT_EQ(trie.code(SetLimit{0}), "ok");
    EXPECT_EQ(trie.code(Enforce{}), "ok");
    EXPECT_EQ(usage(), Counts({0, 1, 2}));
    EXPECT_EQ(trie.code(NewTrie{}), "ok");
    EXPECT_EQ(usage(), Counts({0, 0, 0})) << "another trie";
  }
}

TEST(SnapshotRules, AWindowOfNoTokenIsRefusedWhenDocumentedMR27) {
  RulesCase cache(contracts().reference_of(rotating_kind()), Profile::kDocumented,
                  Record::of(RowsConfig{.max_size = 0}));
  EXPECT_EQ(cache.code(New{}), "out_of_range");
  EXPECT_EQ(cache.code(tokens(1, 1)), "precondition") << "there is no cache";
}

}  // namespace
}  // namespace kvo::snapshot
