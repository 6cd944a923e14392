// Single rules of layered.vector, for every subject.
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

INSTANTIATE_TEST_SUITE_P(
    Every, LayeredRules,
    testing::ValuesIn(contracts().subjects_of(*contracts().find_kind("layered", "vector"))),
    variant_name);

}  // namespace
}  // namespace kvo::layered
