// Single rules of provider.contiguous, in both profiles, for every subject.
#include <limits>

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

INSTANTIATE_TEST_SUITE_P(Every, ContiguousRules,
                         testing::ValuesIn(contracts().subjects_without_card(contiguous_kind())),
                         variant_name);

}  // namespace
}  // namespace kvo::provider
