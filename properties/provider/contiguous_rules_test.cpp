// Single rules of provider.contiguous, in both profiles, for every subject.
#include <cmath>
#include <limits>

#include "properties/campaign/metamorphic.hpp"
#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/provider/contiguous_operations.hpp"

namespace kvo::provider {
namespace {

using Floats = std::vector<float>;

class ContiguousRules : public testing::TestWithParam<const Subject*> {
 protected:
  /// A case with a cache of 2 layers and 4 positions.
  RulesCase open(Profile profile) {
    RulesCase made(*GetParam(), profile);
    EXPECT_EQ(made.code(NewContiguous{{}, 2, 4}), "ok");
    return made;
  }
  RulesCase original() { return open(Profile::kOriginal); }
  RulesCase documented() { return open(Profile::kDocumented); }
};

Update rows(std::int64_t layer, const Shape& shape, float first) {
  return {{}, layer, counting(shape, first), counting(shape, first + 1000)};
}

TEST_P(ContiguousRules, RowsOfABatchAreKeptApartZF11) {
  auto cache = documented();
  EXPECT_EQ(cache.code(rows(0, {2, 1, 2}, 1)), "ok");
  EXPECT_EQ(cache.code(rows(0, {2, 2, 2}, 11)), "ok");
  const Found found = cache.values(Get{{}, 0, {}});
  EXPECT_EQ(found.k->shape, Shape({2, 3, 2}));
  EXPECT_EQ(elements_of(found.k), Floats({1, 2, 11, 12, 13, 14, 3, 4, 15, 16, 17, 18}));
  EXPECT_EQ(elements_of(found.v).front(), 1001);
  EXPECT_EQ(cache.values(SeqLen{}).n, 3);
  EXPECT_FALSE(cache.values(Get{{}, 1, {}}).found);
  EXPECT_FALSE(cache.values(Get{{}, 2, {}}).found);
}

TEST_P(ContiguousRules, AViewShowsLaterWritesAndACompactedCopyDoesNotZF14) {
  auto cache = documented();
  cache.values(rows(0, {1, 2, 2}, 1));
  cache.values(rows(1, {2, 2, 1}, 1));
  EXPECT_EQ(cache.values(Get{{}, 0, {}}).handle, 0);
  EXPECT_EQ(cache.values(Get{{}, 1, {}}).handle, 1);
  cache.values(Truncate{{}, 1});
  cache.values(rows(0, {1, 1, 2}, 50));
  cache.values(rows(1, {2, 1, 1}, 50));
  EXPECT_EQ(elements_of(cache.values(Reread{0}).k), Floats({1, 2, 50, 51}));
  EXPECT_EQ(elements_of(cache.values(Reread{1}).k), Floats({1, 2, 3, 4}));
  cache.values(Poke{0, "v", 0, -7});
  cache.values(Poke{1, "k", 0, -8});
  EXPECT_EQ(elements_of(cache.values(Get{{}, 0, {}}).v).front(), -7);
  EXPECT_EQ(elements_of(cache.values(Get{{}, 1, {}}).k).front(), 1);
}

TEST_P(ContiguousRules, AFullBatchIsAViewZF14) {
  auto cache = documented();
  cache.values(rows(0, {2, 4, 1}, 1));
  EXPECT_EQ(cache.values(Get{{}, 0, {}}).handle, 0);
  cache.values(Reset{});
  cache.values(rows(0, {2, 1, 1}, 50));
  EXPECT_EQ(elements_of(cache.values(Reread{0}).k), Floats({50, 2, 3, 4, 51, 6, 7, 8}));
}

TEST_P(ContiguousRules, ResetKeepsBatchAndDimZF16) {
  auto cache = documented();
  cache.values(rows(0, {2, 1, 2}, 1));
  cache.values(Reset{});
  EXPECT_EQ(cache.values(SeqLen{}).n, 0);
  EXPECT_EQ(cache.code(rows(0, {1, 1, 2}, 1)), "bad_shape");
  EXPECT_EQ(cache.code(rows(0, {2, 1, 3}, 1)), "bad_shape");
  EXPECT_EQ(cache.code(rows(0, {2, 1, 2}, 1)), "ok");
}

TEST_P(ContiguousRules, ChecksComeInTheOrderOfZF9) {
  auto cache = documented();
  EXPECT_EQ(cache.code(rows(2, {7}, 1)), "out_of_range");
  EXPECT_EQ(cache.code(rows(-1, {1, 1, 1}, 1)), "out_of_range");
  EXPECT_EQ(cache.code(rows(0, {7}, 1)), "bad_shape");
  cache.values(rows(0, {1, 1, 2}, 1));
  EXPECT_EQ(cache.code(rows(0, {2, 9, 2}, 1)), "bad_shape");
  EXPECT_EQ(cache.code(rows(0, {1, 9, 2}, 1)), "full");
}

TEST_P(ContiguousRules, NegativeSizesAreRefusedAtConstructionWhenDocumentedZF8) {
  auto cache = documented();
  cache.values(rows(0, {1, 1, 1}, 5));
  EXPECT_EQ(cache.code(NewContiguous{{}, -1, 4}), "out_of_range");
  EXPECT_EQ(cache.code(NewContiguous{{}, 1, -4}), "out_of_range");
  EXPECT_EQ(elements_of(cache.values(Get{{}, 0, {}}).k), Floats({5})) << "the earlier cache stays";

  auto quirky = original();
  EXPECT_EQ(quirky.code(NewContiguous{{}, -1, 4}), "precondition");
  EXPECT_EQ(quirky.code(NewContiguous{{}, 1, -4}), "ok");
  EXPECT_EQ(quirky.code(rows(0, {1, 1, 1}, 1)), "precondition");
  EXPECT_EQ(quirky.code(rows(0, {0, 1, 1}, 1)), "full");
}

TEST_P(ContiguousRules, AnOverflowingSizeIsAnErrorZF1) {
  const NewContiguous longest{{}, 1, std::numeric_limits<std::int64_t>::max()};
  auto cache = documented();
  cache.values(longest);
  EXPECT_EQ(cache.code(rows(0, {2, 1, 1}, 1)), "out_of_range");
  EXPECT_EQ(cache.code(rows(0, {1, 1, 1}, 1)), "out_of_memory");
  auto quirky = original();
  quirky.values(longest);
  EXPECT_EQ(quirky.code(rows(0, {2, 1, 1}, 1)), "precondition");
}

TEST_P(ContiguousRules, AFailedFirstUpdatePinsNothingWhenDocumentedZF10) {
  auto cache = documented();
  EXPECT_EQ(cache.code(rows(0, {2, 5, 2}, 1)), "full");
  EXPECT_EQ(cache.code(rows(0, {1, 1, 3}, 1)), "ok");

  auto quirky = original();
  EXPECT_EQ(quirky.code(rows(0, {2, 5, 2}, 1)), "full");
  EXPECT_EQ(quirky.code(rows(0, {1, 1, 3}, 1)), "bad_shape");
  EXPECT_EQ(quirky.code(rows(0, {2, 1, 2}, 1)), "ok");
}

TEST_P(ContiguousRules, VMustHaveTheShapeOfKWhenDocumentedZF11) {
  const Tensor k = counting({1, 2, 2}, 1);
  auto cache = documented();
  EXPECT_EQ(cache.code(Update{{}, 0, {}, k}), "bad_shape");
  EXPECT_EQ(cache.code(Update{{}, 0, k, {}}), "bad_shape");
  EXPECT_EQ(cache.code(Update{{}, 0, k, counting({1, 1, 2}, 1)}), "bad_shape");
  EXPECT_EQ(cache.code(Update{{}, 0, k, counting({2, 2, 1}, 1)}), "bad_shape");
  EXPECT_FALSE(cache.values(Get{{}, 0, {}}).found);
  EXPECT_EQ(cache.code(rows(0, {3, 1, 1}, 1)), "ok") << "nothing was pinned";
}

TEST_P(ContiguousRules, OnlyTheNumberOfVsCellsMattersInTheOriginalZF11) {
  const Tensor k = counting({1, 2, 2}, 1);
  auto cache = original();
  EXPECT_EQ(cache.code(Update{{}, 0, {}, k}), "precondition");
  EXPECT_EQ(cache.code(Update{{}, 0, k, {}}), "precondition");
  EXPECT_EQ(cache.code(Update{{}, 0, k, counting({3}, 7)}), "precondition");
  EXPECT_EQ(cache.code(Update{{}, 0, counting({2, 1, 1}, 1), counting({9}, 7)}), "ok")
      << "what aborts pins nothing";
  EXPECT_EQ(elements_of(cache.values(Get{{}, 0, {}}).v), Floats({7, 8}));
}

TEST_P(ContiguousRules, ANegativeTruncateCountsAsZeroWhenDocumentedZF18) {
  auto cache = documented();
  cache.values(rows(0, {1, 2, 1}, 1));
  cache.values(Truncate{{}, -3});
  EXPECT_EQ(cache.values(SeqLen{}).n, 0);
  EXPECT_FALSE(cache.values(Get{{}, 0, {}}).found);
  EXPECT_EQ(cache.code(rows(0, {1, 4, 1}, 1)), "ok");
}

TEST_P(ContiguousRules, ANegativeTruncateLeadsOutOfTheBufferUntilResetZF4ZF18) {
  auto cache = original();
  cache.values(rows(0, {1, 2, 1}, 1));
  cache.values(Truncate{{}, -3});
  EXPECT_EQ(cache.values(SeqLen{}).n, -3);
  EXPECT_EQ(cache.code(Get{{}, 0, {}}), "precondition");
  EXPECT_FALSE(cache.values(Get{{}, 1, {}}).found);
  EXPECT_EQ(cache.code(rows(0, {1, 0, 1}, 1)), "precondition");
  cache.values(Reset{});
  EXPECT_EQ(cache.code(rows(0, {1, 1, 1}, 9)), "ok");
  EXPECT_EQ(elements_of(cache.values(Get{{}, 0, {}}).k), Floats({9}));
}

TEST_P(ContiguousRules, EmptyRowsAreAcceptedZF12) {
  auto cache = documented();
  EXPECT_EQ(cache.code(rows(0, {1, 0, 2}, 1)), "ok");
  EXPECT_EQ(cache.code(rows(0, {1, 1, 3}, 1)), "bad_shape") << "no row, but pinned";
  EXPECT_EQ(cache.code(rows(1, {0, 3, 2}, 1)), "ok");
  const Found found = cache.values(Get{{}, 1, {}});
  EXPECT_TRUE(found.found);
  EXPECT_EQ(found.k->shape, Shape({0, 3, 2}));
}

// ---- Storage types; devices refuse what they cannot store ----

const std::vector<StorageFormat> kNarrow{
    {StorageType::kF16},          {StorageType::kBf16},        {StorageType::kF8E4m3},
    {StorageType::kF8E5m2},       {StorageType::kQ8},          {StorageType::kQ4, 64},
    {StorageType::kQ8, 32, true}, {StorageType::kQ4, 32, true}};

ContiguousConfig config_of(const StorageFormat& format) {
  ContiguousConfig config{.rows = {.storage = format.type}};
  if (!in_groups(format.type)) return config;
  config.rows.group = format.group;
  config.rows.offset = format.offset;
  return config;
}

// A case with a cache of 1 layer and 4 positions, or nothing where rows cannot be stored so.
std::optional<RulesCase> narrow_case(const Subject& subject, const StorageFormat& format) {
  RulesCase made(subject, Profile::kDocumented, Record::of(config_of(format)));
  const std::string done = made.code(NewContiguous{{}, 1, 4});
  if (done == "not_supported") return std::nullopt;
  EXPECT_EQ(done, "ok");
  return made;
}

// Each row of a tensor as it is shown when it was stored by itself.
Floats stored_alone(const StorageFormat& format, const Tensor& rows) {
  const auto dim = static_cast<std::size_t>(rows.shape.back());
  Floats shown(static_cast<std::size_t>(rows.elements()));
  std::vector<std::byte> bytes(stored_bytes(format, dim));
  for (std::size_t at = 0; at < shown.size(); at += dim) {
    encode(format, rows.floats().subspan(at, dim), bytes.data());
    decode(format, bytes.data(), std::span(shown).subspan(at, dim));
  }
  return shown;
}

TEST_P(ContiguousRules, RowsAreStoredEachByItselfInItsType) {
  constexpr std::int64_t kDim = 40;  // a group and a short one
  for (const StorageFormat& format : kNarrow) {
    auto cache = narrow_case(*GetParam(), format);
    if (!cache) continue;
    const Update all = rows(0, {2, 3, kDim}, 0.3F);
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      return Update{{}, 0, axis_range(*all.k, 1, begin, end), axis_range(*all.v, 1, begin, end)};
    };
    EXPECT_EQ(cache->code(part(0, 2)), "ok");
    EXPECT_EQ(cache->code(part(2, 3)), "ok");
    const Found found = cache->values(Get{{}, 0, {}});
    EXPECT_EQ(elements_of(found.k), stored_alone(format, *all.k));
    EXPECT_EQ(elements_of(found.v), stored_alone(format, *all.v));
    EXPECT_NE(elements_of(found.v), elements_of(*all.v));
  }
}

TEST_P(ContiguousRules, FloatsAreLimitedOrInfiniteAndKeepTheSignOfZero) {
  const Tensor row = tensor_of({1, 1, 4}, Floats{1e6F, -1e6F, -0.0F, 1.07F});
  const auto shown = [&](StorageType type) -> std::optional<Floats> {
    auto cache = narrow_case(*GetParam(), {type});
    if (!cache) return std::nullopt;
    EXPECT_EQ(cache->code(Update{{}, 0, row, row}), "ok");
    Floats seen = elements_of(cache->values(Get{{}, 0, {}}).k);
    EXPECT_TRUE(std::signbit(seen[2]));
    return seen;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  if (const auto seen = shown(StorageType::kF16))
    EXPECT_EQ(*seen, Floats({infinity, -infinity, 0, 1.0703125F}));
  if (const auto seen = shown(StorageType::kF8E4m3))
    EXPECT_EQ(*seen, Floats({448, -448, 0, 1.125F}));
  if (const auto seen = shown(StorageType::kF8E5m2))
    EXPECT_EQ(*seen, Floats({57344, -57344, 0, 1}));
}

TEST_P(ContiguousRules, AWriteThroughAResultIsRoundedAndCodesTakeNone) {
  for (const StorageFormat& format : kNarrow) {
    auto cache = narrow_case(*GetParam(), format);
    if (!cache) continue;
    cache->values(rows(0, {1, 1, 2}, 1));
    const Floats before = elements_of(cache->values(Get{{}, 0, {}}).k);
    const Poke poke{0, "k", 1, 1.0F + 0x1p-12F};
    EXPECT_EQ(cache->code(poke), in_groups(format.type) ? "precondition" : "ok");
    const Floats after =
        in_groups(format.type) ? before : Floats{before[0], 1};  // the nearest of every type
    EXPECT_EQ(elements_of(cache->values(Get{{}, 0, {}}).k), after) << "one position is a view";
    EXPECT_EQ(elements_of(cache->values(Reread{0}).k), after);
  }
}

TEST_P(ContiguousRules, AFullBatchOfCodesIsAView) {
  const StorageFormat format{StorageType::kQ8};
  auto cache = narrow_case(*GetParam(), format);
  if (!cache) GTEST_SKIP() << "stores no codes";
  cache->values(rows(0, {2, 4, 33}, 1));
  EXPECT_EQ(cache->values(Get{{}, 0, {}}).handle, 0);
  cache->values(Reset{});
  const Update later = rows(0, {2, 1, 33}, 5000);
  cache->values(later);
  Floats want = stored_alone(format, *rows(0, {2, 4, 33}, 1).k);
  const Floats over = stored_alone(format, *later.k);
  std::copy_n(over.begin(), 33, want.begin());
  std::copy_n(over.begin() + 33, 33, want.begin() + 4 * 33);
  EXPECT_EQ(elements_of(cache->values(Reread{0}).k), want);
}

TEST_P(ContiguousRules, AFormatThatThereIsNotIsRefusedAtConstruction) {
  for (const ContiguousConfig& config :
       {ContiguousConfig{.rows = {.storage = StorageType::kQ8, .group = 48}},
        ContiguousConfig{.rows = {.storage = StorageType::kF16, .group = 64}},
        ContiguousConfig{.rows = {.storage = StorageType::kBf16, .offset = true}},
        ContiguousConfig{.rows = {.group = 128}}}) {
    RulesCase cache(*GetParam(), Profile::kDocumented, Record::of(config));
    EXPECT_EQ(cache.code(NewContiguous{{}, 1, 4}), "out_of_range");
    EXPECT_EQ(cache.code(SeqLen{}), "precondition") << "there is no cache";
  }
}

INSTANTIATE_TEST_SUITE_P(Every, ContiguousRules,
                         testing::ValuesIn(contracts().subjects_without_card(contiguous_kind())),
                         variant_name);

}  // namespace
}  // namespace kvo::provider
