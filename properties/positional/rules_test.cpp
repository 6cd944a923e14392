// Rules of contract `positional` whose tests compute something. Others: reference/positional/cases.
// reference/positional/cases.
#include <array>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {
namespace {

using PositionalRules = testing::TestWithParam<const Subject*>;

RulesCase opened() {
  return {*PositionalRules::GetParam(), Profile::kDocumented, Record::of(CacheConfig())};
}

// A case lists only operations of its kind, so that no rule case can hold these.
TEST(PositionalKinds, RefuseOperationsOfOthersOK81) {
  for (const MemberKind member : {MemberKind::kCausal, MemberKind::kSwa, MemberKind::kEncoder})
    for (const Subject* subject : contracts().subjects_of(kind_of(member)))
      for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
        RulesCase cache(*subject, profile, Record::of(CacheConfig()));
        EXPECT_EQ(cache.code(Init{1, 8, 4}), "ok") << subject->name();
        EXPECT_EQ(cache.code(StartForward{{0}, {0}}), "ok");
        const Tensor row = counting({1, 1, 1}, 1);
        EXPECT_EQ(cache.code(Put{row, row}), "ok");
        EXPECT_EQ(cache.code(SetLayerType{0}), "precondition") << subject->name();
        EXPECT_EQ(cache.code(UnderlyingCache{}), "precondition") << subject->name();
        const bool encoder = member == MemberKind::kEncoder;
        EXPECT_EQ(cache.code(EncoderCached{}), encoder ? "ok" : "precondition") << subject->name();
        EXPECT_EQ(cache.code(SetCausal{{0}}), encoder ? "precondition" : "ok") << subject->name();
        EXPECT_EQ(*cache.values(Get{}).k, row);
      }
}

// Not on devices, which refuse them.
TEST_P(PositionalRules, RowsAreStoredInF8AndInGroupsHeadByHeadOK46) {
  const Put put{tensor_of({2, 2, 2}, std::vector<float>{17, 1, 0.3F, -1, 448, 500, 2, -0.0F}),
                tensor_of({2, 2, 1}, std::vector<float>{1.06F, -3, 0.01F, 7})};
  for (const StorageFormat& format :
       {StorageFormat{StorageType::kF8E4m3}, StorageFormat{StorageType::kF8E5m2},
        StorageFormat{StorageType::kQ8}, StorageFormat{StorageType::kQ4, 64},
        StorageFormat{StorageType::kQ8, 128, true}, StorageFormat{StorageType::kQ4, 32, true}}) {
    for (const bool permuted : {false, true}) {
      RulesCase cache = opened();
      EXPECT_EQ(cache.code(SetConfig{0, permuted, MaskType::kUnset, {}}), "ok");
      Init init{1, 2, 4, format.type, std::nullopt, format.offset};
      if (in_groups(format.type)) init.group = format.group;
      const std::string done = cache.code(init);
      if (done == "not_supported") continue;
      EXPECT_EQ(done, "ok");
      EXPECT_EQ(cache.code(StartForward{{0, 1}, {0, 0}}), "ok");
      EXPECT_EQ(cache.code(put), "ok");
      const Get::Returns shown = cache.values(Get{});
      Tensor k = make_tensor({2, 2, 2}, dtype_of(format.type));
      for (std::size_t i = 0; i < 8; i += 2)
        show_stored(format, put.k.floats().subspan(i, 2), &k.bytes[i * k.bytes.size() / 8]);
      EXPECT_EQ(*shown.k, k);
      Tensor v = make_tensor(permuted ? Shape{2, 1, 2} : Shape{2, 2, 1}, k.dtype);
      const std::array<std::size_t, 4> places{0, permuted ? 2U : 1U, permuted ? 1U : 2U, 3};
      for (std::size_t i = 0; i < 4; ++i)
        show_stored(format, put.v.floats().subspan(i, 1), &v.bytes[places[i] * v.bytes.size() / 4]);
      EXPECT_EQ(*shown.v, v);
    }
  }
}

// The same is stored of a text, whether it is given in one pass or token by token.
TEST_P(PositionalRules, StoredRowsDoNotDependOnPassesOK46) {
  constexpr std::int64_t kDim = 40;
  Put all{counting({6, 2, kDim}, 1), counting({6, 2, kDim}, 1'000)};
  for (const StorageType type : {StorageType::kF8E4m3, StorageType::kQ8, StorageType::kQ4}) {
    RulesCase whole = opened();
    RulesCase pieces = opened();
    if (whole.code(Init{1, 6, 6, type}) == "not_supported") continue;
    EXPECT_EQ(pieces.code(Init{1, 6, 6, type}), "ok");
    EXPECT_EQ(whole.code(StartForward{{0, 1, 2, 3, 4, 5}, {0, 0, 0, 0, 0, 0}}), "ok");
    EXPECT_EQ(whole.code(all), "ok");
    for (std::int32_t token = 0; token < 6; ++token) {
      EXPECT_EQ(pieces.code(StartForward{{token}, {0}}), "ok");
      const auto one = [&](const Tensor& rows) {
        return tensor_of({1, 2, kDim}, rows.floats().subspan(
                                           static_cast<std::size_t>(2 * kDim * token), 2 * kDim));
      };
      EXPECT_EQ(pieces.code(Put{one(all.k), one(all.v)}), "ok");
    }
    const Get::Returns a = whole.values(Get{});
    const Get::Returns b = pieces.values(Get{});
    EXPECT_EQ(*a.k, *b.k);
    EXPECT_EQ(*a.v, *b.v);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Every, PositionalRules,
    testing::ValuesIn(contracts().subjects_without_card(kind_of(MemberKind::kCausal))),
    variant_name);

}  // namespace
}  // namespace kvo::positional
