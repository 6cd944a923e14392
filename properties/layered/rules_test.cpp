// Rules of layered.vector whose values are computed, for every subject.
#include <bit>
#include <cstring>
#include <limits>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::layered {
namespace {

class LayeredRules : public testing::TestWithParam<const Subject*> {};

TEST_P(LayeredRules, EachHeadIsStoredByItself) {
  // Heads of 40: a second group of 8, whose largest is not that of the next head.
  constexpr std::int64_t kDim = 40;
  Tensor given = make_tensor({2 * kDim});
  for (std::size_t i = 0; i < given.floats().size(); ++i)
    given.floats()[i] = static_cast<float>(i * i) / 3 - 300;
  for (const StorageFormat format :
       {StorageFormat{StorageType::kF16}, StorageFormat{StorageType::kBf16},
        StorageFormat{StorageType::kF8E4m3}, StorageFormat{StorageType::kF8E5m2},
        StorageFormat{StorageType::kQ8}, StorageFormat{StorageType::kQ4, 64},
        StorageFormat{StorageType::kQ8, 32, true}, StorageFormat{StorageType::kQ4, 128, true}}) {
    Tensor want = make_tensor({2 * kDim}, dtype_of(format.type));
    for (std::size_t head = 0; head < 2; ++head)
      show_stored(format, given.floats().subspan(head * kDim, kDim),
                  &want.bytes[head * kDim * dtype_bytes(want.dtype)]);
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const Config config{
          .rows = {.storage = format.type, .group = format.group, .offset = format.offset}};
      RulesCase one(*GetParam(), profile, Record::of(config));
      const std::string made = one.code(WithCapacity{1, 2, kDim, 1});
      if (made == "not_supported") continue;  // on a device
      EXPECT_EQ(made, "ok");
      EXPECT_EQ(one.code(Append{0, 0, counting({kDim}, 1), given}), "bad_shape");
      EXPECT_EQ(one.code(Append{0, 0, given, given}), "ok");
      EXPECT_EQ(one.code(Pin{0, 0}), "ok");
      EXPECT_EQ(one.values(Pinned{0, 0}).same, true);
      EXPECT_EQ(one.values(Keys{0, 0}).k, want);
      EXPECT_EQ(one.values(Values{0, 0}).v, want);
      EXPECT_EQ(one.code(Advance{0}), "ok");
      EXPECT_EQ(one.code(Append{0, 0, given, given}), "ok");
      EXPECT_EQ(one.values(Pinned{0, 0}).same, std::nullopt) << "it was reserved for one token";
    }
  }
}

TEST_P(LayeredRules, RefusesAStorageThatThereIsNot) {
  for (const Config& config : {Config{.rows = {.storage = StorageType::kQ8, .group = 48}},
                               Config{.rows = {.storage = StorageType::kF16, .offset = true}}}) {
    RulesCase one(*GetParam(), Profile::kDocumented, Record::of(config));
    EXPECT_EQ(one.code(New{1, 1, 2}), "out_of_range");
    EXPECT_EQ(one.code(Len{0}), "precondition") << "there is no cache";
  }
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
