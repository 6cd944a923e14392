// Single rules of provider.paged, in both profiles, for every subject.
#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/provider/paged_operations.hpp"

namespace kvo::provider {
namespace {

using block_pool::Available;
using block_pool::FreeBlock;
using block_pool::ReadBlock;
using Floats = std::vector<float>;
using Blocks = std::vector<Nullable<std::int64_t>>;

constexpr std::int64_t kHeadDim = 4;

class PagedRules : public testing::TestWithParam<const Subject*> {
 protected:
  /// A case with a cache of 2 layers over blocks of 2 positions, of which 4 are left.
  RulesCase open(Profile profile) {
    RulesCase made(*GetParam(), profile);
    first_ = made.values(NewPool{2, 2, kHeadDim, 1}).cap - 4;
    EXPECT_EQ(made.code(NewPaged{{}, 2}), "ok");
    EXPECT_EQ(made.values(DrainPool{4}).taken, first_);
    return made;
  }
  RulesCase original() { return open(Profile::kOriginal); }
  RulesCase documented() { return open(Profile::kDocumented); }
  /// The blocks of these numbers, counted from the first that is left.
  [[nodiscard]] Blocks left(const std::vector<std::int64_t>& numbers) const {
    Blocks blocks;
    for (const std::int64_t n : numbers) blocks.emplace_back(first_ + n);
    return blocks;
  }

  std::int64_t first_ = 0;  ///< the next block that the pool hands out
};

Update rows(std::int64_t layer, std::int64_t seq, float first) {
  return {{}, layer, counting({1, seq, kHeadDim}, first), counting({1, seq, kHeadDim}, -first)};
}

TEST_P(PagedRules, PositionsOfAllChannelsLieTogetherInABlockZF29) {
  auto cache = documented();
  EXPECT_EQ(cache.code(Update{{}, 1, counting({2, 3, 2}, 1), counting({2, 3, 2}, 101)}), "ok");
  EXPECT_EQ(cache.values(Table{}).blocks, left({0, 1}));
  const auto block = cache.values(ReadBlock{first_});
  EXPECT_EQ(block.k, Floats({0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 7, 8, 3, 4, 9, 10}));
  EXPECT_EQ(block.used, 2);
  EXPECT_EQ(cache.values(ReadBlock{first_ + 1}).used, 1);
  const Found found = cache.values(Get{{}, 1, {}});
  EXPECT_EQ(found.k->shape, Shape({2, 3, 2}));
  EXPECT_EQ(elements_of(found.k), elements_of(counting({2, 3, 2}, 1)));
  EXPECT_EQ(elements_of(found.v), elements_of(counting({2, 3, 2}, 101)));
  EXPECT_EQ(cache.values(SeqLen{}).n, 0) << "layer 0 has nothing";
}

TEST_P(PagedRules, LayersShareBlocksZF32) {
  auto cache = documented();
  cache.values(rows(0, 3, 1));
  cache.values(rows(1, 3, 50));
  EXPECT_EQ(cache.values(Table{}).blocks, left({0, 1}));
  EXPECT_EQ(elements_of(cache.values(Get{{}, 0, {}}).k).front(), 1);
  EXPECT_EQ(elements_of(cache.values(Get{{}, 1, {}}).k).front(), 50);
}

TEST_P(PagedRules, AResultIsAlwaysACopyZF35) {
  auto cache = documented();
  cache.values(rows(0, 1, 1));
  EXPECT_EQ(cache.values(Get{{}, 0, {}}).handle, 0);
  cache.values(Poke{0, "k", 0, -100});
  EXPECT_EQ(elements_of(cache.values(Get{{}, 0, {}}).k).front(), 1);
}

TEST_P(PagedRules, FreeGivesTheTableBackInOrderZF37) {
  auto cache = documented();
  cache.values(rows(0, 4, 1));
  EXPECT_EQ(cache.values(Available{}).n, 2);
  EXPECT_EQ(cache.code(Free{}), "ok");
  EXPECT_EQ(cache.code(Reset{}), "ok");
  EXPECT_EQ(cache.values(Available{}).n, 4);
  EXPECT_EQ(cache.code(Update{{}, 0, counting({4, 1, 1}, 1), counting({4, 1, 1}, 1)}), "ok")
      << "the layout is forgotten";
  EXPECT_EQ(cache.values(Table{}).blocks, left({1}));
}

TEST_P(PagedRules, ChecksOfKComeInTheOrderOfZF28) {
  auto cache = documented();
  EXPECT_EQ(cache.code(Update{{}, 2, counting({5}, 1), {}}), "out_of_range");
  EXPECT_EQ(cache.code(Update{{}, 0, counting({5}, 1), {}}), "bad_shape");
  EXPECT_EQ(cache.code(Update{{}, 0, counting({1, 1, 3}, 1), {}}), "bad_shape");
  cache.values(rows(0, 1, 1));
  EXPECT_EQ(cache.code(Update{{}, 1, counting({2, 1, 2}, 1), {}}), "bad_shape");
}

TEST_P(PagedRules, ConstructionIsCheckedWhenDocumentedZF27) {
  RulesCase cache(*GetParam(), Profile::kDocumented);
  EXPECT_EQ(cache.code(NewPool{0, 2, 2, 1}), "out_of_range");
  EXPECT_EQ(cache.code(NewPaged{{}, -1}), "other:nil_pool");
  cache.values(NewPool{2, 2, 2, 1});
  EXPECT_EQ(cache.code(NewPaged{{}, -1}), "out_of_range");
  EXPECT_EQ(cache.code(NewPaged{{}, 3}), "out_of_range");
  EXPECT_EQ(cache.code(NewPaged{-1, 1}), "precondition");
  EXPECT_EQ(cache.code(NewPaged{7, 2}), "ok");
  EXPECT_EQ(cache.code(SeqLen{}), "precondition");
  EXPECT_EQ(cache.values(NumLayers{7}).n, 2);
}

TEST_P(PagedRules, ALayerBeyondThePoolAbortsWhenWrittenInTheOriginalZF34) {
  RulesCase cache(*GetParam(), Profile::kOriginal);
  EXPECT_EQ(cache.code(NewPaged{{}, 1}), "precondition");
  cache.values(NewPool{1, 2, kHeadDim, 1});
  EXPECT_EQ(cache.code(NewPaged{{}, -1}), "precondition");
  cache.values(NewPaged{{}, 2});
  EXPECT_EQ(cache.code(rows(1, 1, 1)), "precondition");
  EXPECT_TRUE(cache.values(Table{}).blocks.empty());
  EXPECT_EQ(cache.code(rows(0, 1, 1)), "ok");
}

TEST_P(PagedRules, VMustHaveTheShapeOfKWhenDocumentedZF33) {
  const Tensor k = counting({1, 2, kHeadDim}, 1);
  auto cache = documented();
  EXPECT_EQ(cache.code(Update{{}, 0, {}, k}), "bad_shape");
  EXPECT_EQ(cache.code(Update{{}, 0, k, {}}), "bad_shape");
  EXPECT_EQ(cache.code(Update{{}, 0, k, counting({2, 1, kHeadDim}, 1)}), "bad_shape");
  EXPECT_TRUE(cache.values(Table{}).blocks.empty());
  EXPECT_EQ(cache.code(Update{{}, 0, counting({2, 1, 2}, 1), counting({2, 1, 2}, 1)}), "ok");
}

TEST_P(PagedRules, AShortVChangesNothingInTheOriginalZF33) {
  auto cache = original();
  EXPECT_EQ(cache.code(Update{{}, 0, counting({1, 2, kHeadDim}, 1), counting({7}, 1)}),
            "precondition");
  EXPECT_TRUE(cache.values(Table{}).blocks.empty());
  EXPECT_EQ(cache.values(Available{}).n, 4);
  EXPECT_EQ(cache.code(Update{{}, 0, counting({1, 2, kHeadDim}, 1), counting({9}, 1)}), "ok");
}

TEST_P(PagedRules, AnAppendThatRunsDryChangesNothingWhenDocumentedZF30) {
  auto cache = documented();
  cache.values(rows(0, 1, 1));
  EXPECT_EQ(cache.code(rows(0, 9, 50)), "exhausted");
  EXPECT_EQ(cache.values(Table{}).blocks, left({0}));
  EXPECT_EQ(cache.values(Available{}).n, 3);
  const auto block = cache.values(ReadBlock{first_});
  EXPECT_EQ(block.used, 1);
  EXPECT_EQ(block.k[kHeadDim], 0);
  EXPECT_EQ(cache.code(rows(0, 7, 50)), "ok");
}

TEST_P(PagedRules, AnAppendThatRunsDryKeepsBlocksAndCellsInTheOriginalZF30) {
  auto cache = original();
  cache.values(rows(0, 1, 1));
  EXPECT_EQ(cache.code(rows(0, 9, 50)), "exhausted");
  EXPECT_EQ(cache.values(Table{}).blocks, left({0, 1, 2, 3}));
  EXPECT_EQ(cache.values(SeqLen{}).n, 1);
  EXPECT_EQ(cache.values(ReadBlock{first_}).k[kHeadDim], 50);
  EXPECT_EQ(cache.values(ReadBlock{first_ + 3}).used, 2);
  cache.values(Truncate{{}, 1});  // ZF-41
  EXPECT_EQ(cache.values(Available{}).n, 3);
}

TEST_P(PagedRules, OnlyASuccessfulAppendPinsTheLayoutWhenDocumentedZF31) {
  const Update other{{}, 0, counting({2, 1, 2}, 1), counting({2, 1, 2}, 1)};
  auto cache = documented();
  EXPECT_EQ(cache.code(rows(0, 0, 1)), "ok");
  EXPECT_EQ(cache.code(rows(0, 9, 1)), "exhausted");
  EXPECT_EQ(cache.code(other), "ok");

  auto quirky = original();
  EXPECT_EQ(quirky.code(rows(0, 0, 1)), "ok");
  EXPECT_EQ(quirky.code(other), "bad_shape");
}

TEST_P(PagedRules, TruncateLowersUsedOfTheCutBlockWhenDocumentedZF39) {
  auto cache = documented();
  cache.values(rows(0, 4, 1));
  cache.values(Truncate{{}, 3});
  EXPECT_EQ(cache.values(ReadBlock{first_ + 1}).used, 1);
  cache.values(Truncate{{}, 2});
  EXPECT_EQ(cache.values(Table{}).blocks, left({0}));
  EXPECT_EQ(cache.values(ReadBlock{first_}).used, 2);

  auto quirky = original();
  quirky.values(rows(0, 4, 1));
  quirky.values(Truncate{{}, 3});
  EXPECT_EQ(quirky.values(ReadBlock{first_ + 1}).used, 2);
}

TEST_P(PagedRules, TruncateUpwardsChangesNothingWhenDocumentedZF40) {
  auto cache = documented();
  EXPECT_EQ(cache.code(Truncate{{}, 100}), "ok");
  cache.values(rows(0, 3, 1));
  cache.values(Truncate{{}, 1});
  EXPECT_EQ(cache.code(Truncate{{}, 3}), "ok");
  EXPECT_EQ(cache.values(Table{}).blocks, left({0}));
  EXPECT_EQ(cache.values(Available{}).n, 3);
}

TEST_P(PagedRules, TruncateUpwardsTakesFreedBlocksBackInTheOriginalZF40) {
  auto cache = original();
  EXPECT_EQ(cache.code(Truncate{{}, 1}), "precondition") << "beyond the table's capacity";
  cache.values(rows(0, 5, 1));  // 3 blocks, capacity 4
  cache.values(Truncate{{}, 1});
  EXPECT_EQ(cache.code(Truncate{{}, 5}), "ok");
  EXPECT_EQ(cache.values(Table{}).blocks, left({0, 1, 2}));
  EXPECT_EQ(cache.values(Table{}).cursors, std::vector<std::int64_t>({1, 0}));
  EXPECT_EQ(cache.values(Available{}).n, 3) << "the pool has them, too";
}

TEST_P(PagedRules, ANullEntryAbortsWritesAndFreesInTheOriginalZF38) {
  auto cache = original();
  cache.values(rows(0, 5, 1));
  EXPECT_EQ(cache.code(Truncate{{}, 7}), "ok");
  EXPECT_FALSE(cache.values(Table{}).blocks.back().has_value());
  EXPECT_EQ(cache.code(rows(0, 2, 1)), "precondition");
  EXPECT_EQ(cache.code(Free{}), "precondition");
  EXPECT_EQ(cache.code(Truncate{{}, 6}), "precondition");
  EXPECT_EQ(cache.values(SeqLen{}).n, 5);
  EXPECT_EQ(cache.code(rows(0, 1, 1)), "ok");
}

TEST_P(PagedRules, OnlyItsCacheFreesABlockWhenDocumentedZF24) {
  auto cache = documented();
  cache.values(rows(0, 1, 1));
  cache.values(FreeBlock{first_});
  EXPECT_EQ(cache.values(Available{}).n, 3);

  auto quirky = original();
  quirky.values(rows(0, 1, 1));
  quirky.values(FreeBlock{first_});
  EXPECT_EQ(quirky.values(Available{}).n, 4);
}

// ---- Storage types; devices refuse what they cannot store ----

// A case with a cache of 1 layer over blocks of 2 positions of 64 cells, or nothing where rows
// cannot be stored so.
std::optional<RulesCase> narrow_case(const Subject& subject, StorageType type,
                                     std::int64_t head_dim, std::int64_t& cap) {
  PagedConfig config{.rows = {.storage = type}};
  RulesCase made(subject, Profile::kDocumented, Record::of(std::move(config)));
  const auto pool = made.run(NewPool{1, 2, head_dim, 1});
  if (pool.failed_with(Code::kNotSupported)) return std::nullopt;
  EXPECT_FALSE(pool.error);
  if (pool.error) return std::nullopt;
  cap = pool.as<NewPool::Returns>().cap;
  EXPECT_EQ(made.code(NewPaged{{}, 1}), "ok");
  return made;
}

TEST_P(PagedRules, ThePoolCountsBlocksInTheBytesThatRowsTake) {
  std::int64_t cap = 0;
  // 2^20 bytes over 2 sides of 2 positions.
  if (narrow_case(*GetParam(), StorageType::kF32, 64, cap)) EXPECT_EQ(cap, 1'048'576 / (4 * 256));
  if (narrow_case(*GetParam(), StorageType::kF16, 64, cap)) EXPECT_EQ(cap, 1'048'576 / (4 * 128));
  if (narrow_case(*GetParam(), StorageType::kQ8, 64, cap)) EXPECT_EQ(cap, 1'048'576 / (4 * 68));
  if (narrow_case(*GetParam(), StorageType::kQ4, 40, cap)) EXPECT_EQ(cap, 1'048'576 / (4 * 24));
}

TEST_P(PagedRules, EachChannelOfAPositionIsARow) {
  for (const StorageType type : {StorageType::kF8E4m3, StorageType::kQ8, StorageType::kQ4}) {
    std::int64_t cap = 0;
    auto cache = narrow_case(*GetParam(), type, 64, cap);
    if (!cache) continue;
    const StorageFormat format{type};
    const Tensor k = counting({2, 3, 32}, 0.3F);
    EXPECT_EQ(cache->code(Update{{}, 0, k, counting({2, 3, 32}, 500)}), "ok");
    Floats want(static_cast<std::size_t>(k.elements()));
    std::vector<std::byte> bytes(stored_bytes(format, 32));
    for (std::size_t at = 0; at < want.size(); at += 32) {
      encode(format, k.floats().subspan(at, 32), bytes.data());
      decode(format, bytes.data(), std::span(want).subspan(at, 32));
    }
    EXPECT_EQ(elements_of(cache->values(Get{{}, 0, {}}).k), want);
    const auto block = cache->values(ReadBlock{*cache->values(Table{}).blocks.front()});
    // [position][channel][dim], where the tensor is [channel][position][dim].
    EXPECT_EQ(Floats(block.k.begin(), block.k.begin() + 32),
              Floats(want.begin(), want.begin() + 32));
    EXPECT_EQ(Floats(block.k.begin() + 32, block.k.begin() + 64),
              Floats(want.begin() + 96, want.begin() + 128));
  }
}

TEST_P(PagedRules, GroupsOfCodesEndWithARow) {
  std::int64_t cap = 0;
  for (const StorageType type : {StorageType::kQ8, StorageType::kQ4}) {
    auto cache = narrow_case(*GetParam(), type, 80, cap);
    if (!cache) continue;
    EXPECT_EQ(cache->code(Update{{}, 0, counting({2, 1, 40}, 1), counting({2, 1, 40}, 1)}),
              "bad_shape");
    EXPECT_TRUE(cache->values(Table{}).blocks.empty());
    EXPECT_EQ(cache->code(Update{{}, 0, counting({1, 1, 80}, 1), counting({1, 1, 80}, 1)}), "ok");
  }
  if (auto cache = narrow_case(*GetParam(), StorageType::kF16, 80, cap))
    EXPECT_EQ(cache->code(Update{{}, 0, counting({2, 1, 40}, 1), counting({2, 1, 40}, 1)}), "ok");
}

TEST_P(PagedRules, AWriteThroughAResultIsRoundedAndCodesTakeNone) {
  for (const StorageType type : {StorageType::kF16, StorageType::kF8E5m2, StorageType::kQ4}) {
    std::int64_t cap = 0;
    auto cache = narrow_case(*GetParam(), type, 2, cap);
    if (!cache) continue;
    cache->values(Update{{}, 0, counting({1, 1, 2}, 1), counting({1, 1, 2}, 1)});
    EXPECT_EQ(cache->values(Get{{}, 0, {}}).handle, 0);
    EXPECT_EQ(cache->code(Poke{0, "v", 1, 1 + 0x1p-12F}),
              type == StorageType::kQ4 ? "precondition" : "ok");
    if (type != StorageType::kQ4)
      EXPECT_EQ(elements_of(cache->values(Reread{0}).v), Floats({1, 1}));
    EXPECT_EQ(elements_of(cache->values(Get{{}, 0, {}}).v), Floats({1, 2})) << "a copy (ZF-35)";
  }
}

TEST_P(PagedRules, AFormatThatThereIsNotIsRefusedAtConstruction) {
  RulesCase cache(*GetParam(), Profile::kOriginal,
                  Record::of(PagedConfig{.rows = {.storage = StorageType::kQ4, .group = 16}}));
  EXPECT_EQ(cache.code(NewPool{1, 2, 4, 1}), "out_of_range");
  EXPECT_EQ(cache.code(Available{}), "precondition") << "there is no pool";
}

INSTANTIATE_TEST_SUITE_P(Every, PagedRules,
                         testing::ValuesIn(contracts().subjects_without_card(paged_kind())),
                         variant_name);

}  // namespace
}  // namespace kvo::provider
