// Single rules of encoders and wrappers: the section "Profile documented", and configs of members.
#include "properties/contracts.hpp"
#include "properties/positional/rules_case.hpp"

namespace kvo::positional {
namespace {

using PositionalEncoder = PositionalTest;
using PositionalWrapper = PositionalTest;

constexpr Profile kOriginal = Profile::kOriginal;
constexpr Profile kDocumented = Profile::kDocumented;
constexpr StorageType kF32 = StorageType::kF32;

bool cached(PositionalCase& cache) {
  return cache.values(EncoderCached{}).value;
}

// ---- Encoder ----

TEST_P(PositionalEncoder, RefusesWhatOneSequenceCannotDoOK70OK77) {
  for (const Profile profile : kProfiles) {
    PositionalCase cache = open(encoder(), profile, R"({"backend":{"cache_padding":2,
      "permuted_v":false,"mask_dtype":"unset"}})");
    EXPECT_EQ(cache.code(Init{2, 8, 8, kF32}), "precondition");
    EXPECT_EQ(cache.code(Init{1, 8, 8, kF32}), "precondition") << "padding";
    EXPECT_EQ(cache.code(SetConfig{1, false, MaskType::kUnset, {}}), "ok") << "nothing changed";
    EXPECT_EQ(cache.code(SetConfig{}), "precondition") << "once";
    EXPECT_EQ(cache.code(Init{1, 8, 8, kF32}), "ok");
    const auto stored = [&] {
      PositionalCase made = ready(encoder(), profile, "{}", {1, 8, 8, kF32});
      EXPECT_EQ(made.pass({0, 1}), "ok");
      return made;
    };
    expect_refused(stored, CopyPrefix{0, 1, 1}, "precondition");
    expect_refused(stored, SetCausal{{0}}, "precondition");
    expect_refused(stored, SetLayerType{0}, "precondition");
    expect_refused(stored, Put{counting({1, 1, 1}, 9), counting({1, 1, 1}, 9)}, "precondition");
    expect_refused(stored, Put{counting({2, 1, 1}, 9), counting({2, 1, 2}, 9)}, "precondition");
  }
}

TEST_P(PositionalEncoder, KeepsTheTypeOfTheTensorsOK73) {
  PositionalCase cache = ready(encoder(), kDocumented, "{}", {1, 8, 8, StorageType::kF16});
  const Tensor odd = tensor_of({1, 1, 1}, std::vector<float>{0.1F});
  EXPECT_EQ(cache.code(Put{odd, odd}), "ok");
  EXPECT_EQ(*cache.values(Get{}).k, odd) << "f32, whatever init says";
}

// ---- Wrapper ----

constexpr std::string_view kCausalAndSwa =
    R"({"caches":[{"cache":"causal","shift":{"kind":"add","scale":1}},)"
    R"({"cache":"swa","window":2}]})";
constexpr std::string_view kSwaAndCausal =
    R"({"caches":[{"cache":"swa","window":2},{"cache":"causal"}]})";
constexpr std::string_view kCausalAndEncoder =
    R"({"caches":[{"cache":"causal"},{"cache":"encoder"}]})";
constexpr std::string_view kEncoderAndCausal =
    R"({"caches":[{"cache":"encoder"},{"cache":"causal"}]})";

// A pass whose rows go to both members.
std::string pass_to_both(PositionalCase& cache, const std::vector<std::int32_t>& positions) {
  const std::string done = cache.pass(positions);
  if (done != "ok") return done;
  EXPECT_EQ(cache.code(SetLayerType{1}), "ok");
  return cache.code(cache.rows(std::ssize(positions)));
}

TEST_P(PositionalWrapper, ATypeThatIsNoMemberIsRefusedAtOnceOK82) {
  const auto filled = [&](Profile profile) {
    PositionalCase cache = ready(wrapper_kind(), profile, kCausalAndSwa, {1, 8, 4, kF32});
    EXPECT_EQ(pass_to_both(cache, {0, 1}), "ok");
    return cache;
  };
  for (const std::int64_t type : {-1, 2, 99}) {
    expect_refused([&] { return filled(kDocumented); }, SetLayerType{type}, "precondition");
    PositionalCase quirky = filled(kOriginal);
    EXPECT_EQ(quirky.code(SetLayerType{type}), "ok");
    EXPECT_EQ(quirky.code(UnderlyingCache{}), "precondition");
    EXPECT_EQ(quirky.code(quirky.rows(2)), "precondition");
    EXPECT_EQ(quirky.code(Get{}), "precondition");
    EXPECT_EQ(quirky.code(SetCausal{{0}}), "precondition");
    EXPECT_EQ(quirky.code(EncoderCached{}), "precondition");
    EXPECT_EQ(quirky.code(StartForward{{2}, {0}}), "ok");
    EXPECT_EQ(quirky.values(UnderlyingCache{}).index, 0) << "each pass chooses member 0";
  }
}

TEST_P(PositionalWrapper, AStartThatOneMemberCannotFollowChangesNoneOK83OK84) {
  // swa has 4 cells and evicts; causal has 4 and does not.
  const auto full = [&](Profile profile) {
    PositionalCase cache = ready(wrapper_kind(), profile, kSwaAndCausal, {1, 4, 2, kF32});
    EXPECT_EQ(pass_to_both(cache, {0, 1}), "ok");
    EXPECT_EQ(pass_to_both(cache, {2, 3}), "ok");
    EXPECT_EQ(cache.values(UnderlyingCache{}).index, 1);
    return cache;
  };
  const StartForward next{.positions = {4}, .seqs = {0}};
  const StartForward again{.positions = {3}, .seqs = {0}};
  expect_refused([&] { return full(kDocumented); }, next, "full");
  expect_refused([&] { return full(kDocumented); }, again, "full");
  PositionalCase cache = full(kDocumented);
  EXPECT_EQ(cache.code(next), "full");
  EXPECT_EQ(cache.values(UnderlyingCache{}).index, 1) << "still selected";
  EXPECT_EQ(cache.code(cache.rows(2)), "ok") << "the pass before is usable";

  PositionalCase quirky = full(kOriginal);
  EXPECT_EQ(quirky.code(next), "full");
  EXPECT_EQ(quirky.values(UnderlyingCache{}).index, 1);
  EXPECT_EQ(quirky.code(quirky.rows(2)), "precondition");
  EXPECT_EQ(quirky.held(0, 0), Positions({-1, -1, 2, 3})) << "what was evicted stays so";
  EXPECT_EQ(quirky.held(0, 1), Positions({0, 1, 2, 3}));

  quirky = full(kOriginal);
  EXPECT_EQ(quirky.code(again), "full");
  EXPECT_EQ(quirky.held(0, 0), Positions({-1, 1, 2, -1})) << "the older token at 3 is gone";
  EXPECT_EQ(quirky.held(0, 1), Positions({0, 1, 2, 3}));
}

TEST_P(PositionalWrapper, ARemovalThatOneMemberRefusesChangesNoneOK86) {
  const auto filled = [&](Profile profile) {
    PositionalCase cache = ready(wrapper_kind(), profile, kCausalAndSwa, {1, 8, 4, kF32});
    EXPECT_EQ(pass_to_both(cache, {0, 1, 2}), "ok");
    return cache;
  };
  expect_refused([&] { return filled(kDocumented); }, Remove{0, 0, 1}, "not_supported");
  expect_refused([&] { return filled(kDocumented); }, Remove{0, 1, 0}, "out_of_range");
  PositionalCase cache = filled(kDocumented);
  EXPECT_EQ(cache.code(Remove{0, 1, kMaxPosition}), "ok");
  EXPECT_EQ(cache.held(0, 0)[1], -1);
  EXPECT_EQ(cache.held(0, 1)[1], -1);

  PositionalCase quirky = filled(kOriginal);
  EXPECT_EQ(quirky.code(Remove{0, 0, 1}), "not_supported");
  EXPECT_EQ(quirky.keys(0), std::vector<float>({1, 1, 2, 0, 0, 0, 0, 0})) << "already shifted";
  EXPECT_EQ(quirky.held(0, 0)[1], 0);
}

TEST_P(PositionalWrapper, AnEncoderForbidsACopyOfTheWholeOK77OK87) {
  for (const Profile profile : kProfiles)
    for (const std::string_view config : {kCausalAndEncoder, kEncoderAndCausal})
      expect_refused(
          [&] {
            PositionalCase cache = ready(wrapper_kind(), profile, config, {1, 8, 4, kF32});
            EXPECT_EQ(pass_to_both(cache, {0, 1}), "ok");
            return cache;
          },
          CopyPrefix{0, 1, 1}, "precondition");
}

TEST_P(PositionalWrapper, MembersOnlyDoWhatTheyCanOK81) {
  for (const Profile profile : kProfiles) {
    const auto filled = [&] {
      PositionalCase cache = ready(wrapper_kind(), profile, kCausalAndEncoder, {1, 8, 4, kF32});
      EXPECT_EQ(pass_to_both(cache, {0, 1}), "ok");
      return cache;
    };
    expect_refused(filled, SetCausal{{0}}, "precondition");
    PositionalCase cache = filled();
    EXPECT_TRUE(cached(cache));
    EXPECT_EQ(cache.code(SetLayerType{0}), "ok");
    EXPECT_EQ(cache.code(EncoderCached{}), "precondition");
    EXPECT_EQ(cache.code(SetCausal{{0}}), "ok");
    EXPECT_EQ(cache.seen(), (SeenKeys{{1, 2}, {1, 2}}));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, PositionalEncoder,
                         testing::ValuesIn(contracts().subjects_of(encoder())), variant_name);
INSTANTIATE_TEST_SUITE_P(Every, PositionalWrapper,
                         testing::ValuesIn(contracts().subjects_of(wrapper_kind())), variant_name);

}  // namespace
}  // namespace kvo::positional
