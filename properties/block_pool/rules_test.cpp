// Single rules of block_pool.stack, in both profiles, for every subject.
#include <limits>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/block_pool/operations.hpp"

namespace kvo::block_pool {
namespace {

class BlockPoolRules : public testing::TestWithParam<const Subject*> {
 protected:
  RulesCase original() { return {*GetParam(), Profile::kOriginal}; }
  RulesCase documented() { return {*GetParam(), Profile::kDocumented}; }
};

// 4 blocks of 2 layers * 2 positions * 32768 cells.
constexpr New kFourBlocks{.num_layers = 2, .block_size = 2, .head_dim = 32768, .max_memory_mb = 4};

TEST_P(BlockPoolRules, SizesFollowTheBudgetZF20) {
  auto pool = original();
  const auto made = pool.values(kFourBlocks);
  EXPECT_EQ(made.cap, 4);
  EXPECT_EQ(made.elems_per_side, 131072);
  EXPECT_EQ(pool.code(New{1, 1, 262144, 1}), "other:budget_too_small");
  EXPECT_EQ(pool.code(New{1, 0, 1, 1}), "out_of_range");
  EXPECT_EQ(pool.values(Cap{}).n, 4) << "a failed construction leaves the earlier pool";
}

TEST_P(BlockPoolRules, AnOverflowingSizeIsAnErrorZF1) {
  constexpr std::int64_t kBig = std::numeric_limits<std::int64_t>::max() / 2;
  for (const New& op : {New{kBig, 3, 1, 1}, New{1, kBig, 1, 1}, New{1, 1, 1, kBig}}) {
    EXPECT_EQ(original().code(op), "precondition");
    EXPECT_EQ(documented().code(op), "out_of_range");
  }
}

TEST_P(BlockPoolRules, BlocksComeInOrderAndTheLastFreedComesFirstZF22) {
  auto pool = original();
  pool.values(kFourBlocks);
  for (const std::int64_t block : {0, 1, 2, 3}) EXPECT_EQ(pool.values(Alloc{}).block, block);
  EXPECT_EQ(pool.code(Alloc{}), "exhausted");
  EXPECT_EQ(pool.code(FreeBlock{1}), "ok");
  EXPECT_EQ(pool.code(FreeBlock{3}), "ok");
  EXPECT_EQ(pool.values(Alloc{}).block, 3);
  EXPECT_EQ(pool.values(Drain{0}).last, 1);
  EXPECT_EQ(pool.values(Drain{0}).last, -1);
}

TEST_P(BlockPoolRules, CellsStartAtZeroAndStayWhenABlockChangesOwnerZF21) {
  auto pool = documented();
  pool.values(kFourBlocks);
  EXPECT_EQ(pool.values(ReadBlock{2}).k, std::vector<float>(131072));
  EXPECT_EQ(pool.values(ReadBlock{2}).v, std::vector<float>(131072));
  pool.values(Alloc{});
  EXPECT_EQ(pool.code(WriteBlock{0, Side::kV, 131071, 5}), "ok");
  EXPECT_EQ(pool.code(WriteBlock{0, Side::kV, 131072, 5}), "precondition");
  pool.values(FreeBlock{0});
  EXPECT_EQ(pool.values(Alloc{}).block, 0);
  EXPECT_EQ(pool.values(ReadBlock{0}).v.back(), 5);
}

TEST_P(BlockPoolRules, OperationsWithoutAPoolOrBlockArePreconditions) {
  auto pool = original();
  EXPECT_EQ(pool.code(Alloc{}), "precondition");
  EXPECT_EQ(pool.code(Concurrent{1, 1, 1}), "precondition");
  pool.values(kFourBlocks);
  for (const std::int64_t block : {-1, 4}) {
    EXPECT_EQ(pool.code(FreeBlock{block}), "precondition");
    EXPECT_EQ(pool.code(ReadBlock{block}), "precondition");
    EXPECT_EQ(pool.code(SetUsed{block, 1}), "precondition");
  }
}

TEST_P(BlockPoolRules, AllocClearsUsedWhenDocumentedZF23) {
  auto pool = documented();
  pool.values(kFourBlocks);
  pool.values(SetUsed{0, 2});
  EXPECT_EQ(pool.values(Alloc{}).used, 0);

  auto quirky = original();
  quirky.values(kFourBlocks);
  quirky.values(SetUsed{0, 2});
  EXPECT_EQ(quirky.values(Alloc{}).used, 2);
}

TEST_P(BlockPoolRules, OnlyAnAllocatedBlockIsTakenBackWhenDocumentedZF24) {
  auto pool = documented();
  pool.values(kFourBlocks);
  EXPECT_EQ(pool.code(FreeBlock{0}), "ok");  // never handed out: nothing happens
  EXPECT_EQ(pool.code(FreeBlock{}), "ok");
  pool.values(Alloc{});
  EXPECT_EQ(pool.code(FreeBlock{0}), "ok");
  EXPECT_EQ(pool.code(FreeBlock{0}), "ok");
  EXPECT_EQ(pool.values(Available{}).n, 4);
  EXPECT_EQ(pool.values(Alloc{}).block, 0);
  EXPECT_EQ(pool.values(Alloc{}).block, 1);
}

TEST_P(BlockPoolRules, ABlockFreedTwiceIsHandedOutTwiceInTheOriginalZF24) {
  auto pool = original();
  pool.values(kFourBlocks);
  EXPECT_EQ(pool.code(FreeBlock{}), "precondition");
  pool.values(FreeBlock{2});
  pool.values(FreeBlock{2});
  EXPECT_EQ(pool.values(Available{}).n, 6);
  EXPECT_EQ(pool.values(Alloc{}).block, 2);
  EXPECT_EQ(pool.values(Alloc{}).block, 2);
  EXPECT_EQ(pool.values(Alloc{}).block, 0);
  EXPECT_EQ(pool.code(Concurrent{2, 10, 1}), "precondition");
}

TEST_P(BlockPoolRules, ThreadsNeverShareABlockAndAllComeBackZF26) {
  for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
    RulesCase pool(*GetParam(), profile);
    pool.values(kFourBlocks);
    EXPECT_EQ(pool.values(Alloc{}).block, 0);
    const auto seen = pool.values(Concurrent{4, 500, 2});
    EXPECT_FALSE(seen.double_owner_seen);
    EXPECT_EQ(seen.available, 3);
    EXPECT_EQ(pool.values(Alloc{}).block, 1) << "the free blocks are in ascending order again";
    EXPECT_EQ(pool.code(Concurrent{1000, 1, 1}), "precondition");
    EXPECT_EQ(pool.code(Concurrent{-1, 1, 1}), "precondition");
  }
}

// ---- Storage types; devices refuse what they cannot store ----

TEST_P(BlockPoolRules, ABlockTakesTheBytesThatItsRowsTake) {
  const auto cap_of = [&](const Config& config) -> std::int64_t {
    RulesCase pool(*GetParam(), Profile::kDocumented, Record::of(config));
    const Observation made = pool.run(New{2, 3, 40, 1});
    if (made.failed_with(Code::kNotSupported)) return 0;
    EXPECT_FALSE(made.error);
    EXPECT_EQ(made.as<New::Returns>().elems_per_side, 240);
    return made.as<New::Returns>().cap;
  };
  const auto is = [](std::int64_t cap, std::int64_t row_bytes) {
    return cap == 0 || cap == 1'048'576 / (2 * 6 * row_bytes);
  };
  EXPECT_TRUE(is(cap_of({}), 160));
  EXPECT_TRUE(is(cap_of({.rows = {.storage = StorageType::kBf16}}), 80));
  EXPECT_TRUE(is(cap_of({.rows = {.storage = StorageType::kF8E4m3}}), 40));
  EXPECT_TRUE(is(cap_of({.rows = {.storage = StorageType::kQ8}}), 34 + 10));
  EXPECT_TRUE(is(cap_of({.rows = {.storage = StorageType::kQ8, .offset = true}}), 36 + 12));
  EXPECT_TRUE(is(cap_of({.rows = {.storage = StorageType::kQ4, .group = 64}}), 22));
}

TEST_P(BlockPoolRules, ACellIsRoundedAndCodesTakeNone) {
  RulesCase pool(*GetParam(), Profile::kDocumented,
                 Record::of(Config{.rows = {.storage = StorageType::kF8E4m3}}));
  if (pool.code(New{1, 1, 4, 1}) != "not_supported") {
    EXPECT_EQ(pool.code(WriteBlock{7, Side::kV, 2, 1.07F}), "ok");
    EXPECT_EQ(pool.code(WriteBlock{7, Side::kV, 3, -1e9F}), "ok");
    EXPECT_EQ(pool.values(ReadBlock{7}).v, std::vector<float>({0, 0, 1.125F, -448}));
    EXPECT_EQ(pool.values(ReadBlock{7}).k, std::vector<float>(4));
  }
  RulesCase codes(*GetParam(), Profile::kDocumented,
                  Record::of(Config{.rows = {.storage = StorageType::kQ4}}));
  if (codes.code(New{1, 1, 4, 1}) == "not_supported") return;
  EXPECT_EQ(codes.code(WriteBlock{7, Side::kV, 2, 1}), "precondition");
  EXPECT_EQ(codes.values(ReadBlock{7}).v, std::vector<float>(4));
}

TEST_P(BlockPoolRules, AFormatThatThereIsNotIsRefused) {
  RulesCase pool(*GetParam(), Profile::kOriginal,
                 Record::of(Config{.rows = {.storage = StorageType::kF16, .offset = true}}));
  EXPECT_EQ(pool.code(New{1, 1, 4, 1}), "out_of_range");
  EXPECT_EQ(pool.code(Available{}), "precondition") << "there is no pool";
}

INSTANTIATE_TEST_SUITE_P(Every, BlockPoolRules,
                         testing::ValuesIn(contracts().subjects_of(stack_kind())), variant_name);

}  // namespace
}  // namespace kvo::block_pool
