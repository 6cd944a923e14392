// Single rules of layered.vector, for every subject.
#include <bit>
#include <cstring>
#include <limits>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/layered/operations.hpp"

namespace kvo::layered {
namespace {

class LayeredRules : public testing::TestWithParam<const Subject*> {
 protected:
  // Cache 0 with one row of two elements in its only layer.
  RulesCase with_a_row() {
    RulesCase one(*GetParam(), Profile::kOriginal);
    EXPECT_EQ(one.code(New{1, 1, 2}), "ok");
    EXPECT_EQ(one.code(Append{0, 0, counting({2}, 1), counting({2}, -5)}), "ok");
    return one;
  }
};

// The capacity is the clone's from the beginning: nobody has looked at it before it is cleared.
TEST_P(LayeredRules, AClonesGuaranteedCapacityIsItsLengthAlsoWhenClearedRS13RS15) {
  RulesCase one = with_a_row();
  ASSERT_EQ(one.values(Clone{0}).cache, 1U);
  EXPECT_EQ(one.code(Clear{1}), "ok");
  EXPECT_EQ(one.code(Pin{1, 0}), "ok");
  EXPECT_EQ(one.values(Pinned{1, 0}).same, true);
  EXPECT_EQ(one.code(Append{1, 0, counting({2}, 3), counting({2}, -7)}), "ok");
  EXPECT_EQ(one.values(Pinned{1, 0}).same, true) << "as many elements as the clone had";
  EXPECT_EQ(one.code(Append{1, 0, counting({2}, 9), counting({2}, -9)}), "ok");
  EXPECT_EQ(one.values(Pinned{1, 0}).same, std::nullopt) << "more: nothing is promised";
}

TEST_P(LayeredRules, ACacheThatBecomesACloneHasItsCapacityRS16) {
  RulesCase one = with_a_row();
  EXPECT_EQ(one.code(New{1, 1, 2}), "ok");
  EXPECT_EQ(one.code(CloneFrom{1, 0}), "ok");
  EXPECT_EQ(one.code(Clear{1}), "ok");
  EXPECT_EQ(one.code(Pin{1, 0}), "ok");
  EXPECT_EQ(one.values(Pinned{1, 0}).same, true);
}

TEST_P(LayeredRules, TheReservedLengthIsNoLimitAndNowhereKeptRS3) {
  RulesCase one(*GetParam(), Profile::kOriginal);
  EXPECT_EQ(one.code(WithCapacity{1, 1, 2, 1}), "ok");
  EXPECT_EQ(one.code(New{1, 1, 2}), "ok");
  EXPECT_EQ(one.values(Debug{0}).text, one.values(Debug{1}).text);
  for (int token = 0; token < 3; ++token) {
    EXPECT_EQ(one.code(Append{0, 0, counting({2}, 1), counting({2}, -5)}), "ok");
    EXPECT_EQ(one.code(Advance{0}), "ok");
  }
  EXPECT_EQ(one.values(Len{0}).len, 3U);
}

TEST_P(LayeredRules, AFailedAppendHasWrittenNothingRS5) {
  for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
    RulesCase one(*GetParam(), profile);
    EXPECT_EQ(one.code(New{2, 1, 2}), "ok");
    EXPECT_EQ(one.code(Append{0, 0, counting({2}, 1), counting({2}, -5)}), "ok");
    const std::string before = one.values(Debug{0}).text;
    EXPECT_NE(one.code(Append{0, 2, counting({2}, 7), counting({2}, 8)}), "ok") << "no layer";
    EXPECT_EQ(one.values(Debug{0}).text, before);
    if (profile == Profile::kOriginal) continue;
    EXPECT_EQ(one.code(Append{0, 1, counting({2}, 7), counting({3}, 8)}), "bad_shape");
    EXPECT_EQ(one.code(Append{0, 0, counting({2}, 7), counting({2}, 8)}), "precondition");
    EXPECT_EQ(one.values(Debug{0}).text, before);
  }
}

TEST_P(LayeredRules, LayersDoNotTouchEachOtherRS10RS18) {
  RulesCase one(*GetParam(), Profile::kOriginal);
  EXPECT_EQ(one.code(New{3, 1, 2}), "ok");
  EXPECT_EQ(one.code(Append{0, 2, counting({2}, 1), counting({2}, -5)}), "ok");
  EXPECT_EQ(one.code(Pin{0, 2}), "ok");
  for (int token = 0; token < 40; ++token)
    EXPECT_EQ(one.code(Append{0, 0, counting({2}, 9), counting({2}, -9)}), "ok");
  EXPECT_EQ(one.code(Advance{0}), "ok");
  EXPECT_EQ(one.values(Pinned{0, 2}).same, true) << "what was returned of a layer stays valid";
  EXPECT_EQ(elements_of(one.values(Keys{0, 2}).k), std::vector<float>({1, 2}));
  EXPECT_EQ(elements_of(one.values(Keys{0, 1}).k), std::vector<float>());
  EXPECT_EQ(elements_of(one.values(Values{0, 0}).v).size(), 80U);
}

TEST_P(LayeredRules, RowsLieInTheirOrderBitForBitRS14) {
  RulesCase one(*GetParam(), Profile::kOriginal);
  EXPECT_EQ(one.code(New{1, 1, 4}), "ok");
  const std::vector<float> odd{std::bit_cast<float>(0x7FC12345U), -0.0F,
                               std::numeric_limits<float>::infinity(), 0x1p-149F};
  const Tensor row = tensor_of({4}, odd);
  EXPECT_EQ(one.code(Append{0, 0, row, row}), "ok");
  EXPECT_EQ(one.code(Append{0, 0, counting({4}, 1), counting({4}, 5)}), "ok");
  for (const std::vector<float>& shown :
       {elements_of(one.values(Keys{0, 0}).k), elements_of(one.values(Values{0, 0}).v)}) {
    ASSERT_EQ(shown.size(), 8U);
    EXPECT_EQ(std::memcmp(shown.data(), odd.data(), odd.size() * sizeof(float)), 0);
  }
  EXPECT_EQ(elements_of(one.values(Keys{0, 0}).k).back(), 4);
}

INSTANTIATE_TEST_SUITE_P(Every, LayeredRules,
                         testing::ValuesIn(contracts().subjects_without_card(
                             *contracts().find_kind("layered", "vector"))),
                         variant_name);

}  // namespace
}  // namespace kvo::layered
