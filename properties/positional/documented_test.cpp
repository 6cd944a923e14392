// The lines of the spec's section "Profile documented", one by one, beside what the original does.
#include <cmath>

#include "properties/contracts.hpp"
#include "properties/positional/rules_case.hpp"

namespace kvo::positional {
namespace {

using PositionalDocumented = PositionalTest;
using Calls = std::vector<std::vector<std::int32_t>>;

constexpr Profile kOriginal = Profile::kOriginal;
constexpr Profile kDocumented = Profile::kDocumented;
constexpr StorageType kF32 = StorageType::kF32;

// The offsets of each shift call that a remove made, whatever it answered.
Calls offsets_of(const Observation& removed) {
  Calls offsets;
  if (!removed.returns) return offsets;
  const auto& calls = removed.as<Remove::Returns>().shift_calls;
  if (!calls) return offsets;
  for (const ShiftCall& call : *calls) offsets.push_back(call.offsets);
  return offsets;
}

// ---- start_forward and the mask ----

TEST_P(PositionalDocumented, AFullPoolEvictsNothingAndKeepsThePassOK22OK28) {
  const auto full = [&](Profile profile) {
    PositionalCase cache = ready(swa(), profile, R"({"window":2})", {1, 8, 2, kF32});
    EXPECT_EQ(cache.pass({0, 1}), "ok");
    EXPECT_EQ(cache.pass({2, 3}), "ok");
    return cache;
  };
  // Two of the four cells could be evicted for position 4, but three are wanted.
  const StartForward wide{.positions = {4, 5, 6}, .seqs = {0, 0, 0}};
  expect_refused([&] { return full(kDocumented); }, wide, "full");
  PositionalCase cache = full(kDocumented);
  EXPECT_EQ(cache.code(wide), "full");
  EXPECT_EQ(cache.seen(), (SeenKeys{{1, 2, 3}, {2, 3, 4}}));
  EXPECT_EQ(cache.code(cache.rows(2)), "ok");
  EXPECT_EQ(cache.code(SetCausal{{0}}), "ok");
  EXPECT_EQ(cache.seen(), (SeenKeys{{1, 2, 5, 6}, {2, 5, 6}}));
  EXPECT_EQ(cache.pass({4, 5}), "ok") << "evictable cells count as free";
  EXPECT_EQ(cache.held(0), Positions({4, 5, 2, 3}));

  PositionalCase quirky = full(kOriginal);
  EXPECT_EQ(quirky.code(wide), "full");
  EXPECT_EQ(quirky.code(quirky.rows(2)), "precondition");
  EXPECT_EQ(quirky.code(Get{}), "precondition");
  EXPECT_EQ(quirky.code(SetCausal{{0}}), "precondition");
  EXPECT_EQ(quirky.held(0), Positions({-1, -1, 2, 3}));
}

// ---- copy_prefix ----

TEST_P(PositionalDocumented, ACopyOntoItselfCutsTheSequenceOK54) {
  const auto copied = [&](Profile profile, std::int32_t length) {
    PositionalCase cache = ready(causal(), profile, "{}", {1, 4, 4, kF32});
    EXPECT_EQ(cache.pass({0, 1, 2}), "ok");
    EXPECT_EQ(cache.code(CopyPrefix{0, 0, length}), "ok");
    return cache.held(0);
  };
  EXPECT_EQ(copied(kDocumented, 2), Positions({0, 1, -1, -1}));
  EXPECT_EQ(copied(kDocumented, 99), Positions({0, 1, 2, -1}));
  EXPECT_EQ(copied(kDocumented, 0), Positions({-1, -1, -1, -1}));
  EXPECT_EQ(copied(kOriginal, 2), Positions({-1, -1, -1, -1}));
}

// ---- remove ----

TEST_P(PositionalDocumented, AMiddleThatTheWindowNeedsCannotBeRemovedOK60) {
  constexpr std::string_view kConfig = R"({"window":2,"shift":{"kind":"add","scale":1}})";
  const auto filled = [&](Profile profile) {
    PositionalCase cache = ready(swa(), profile, kConfig, {1, 16, 8, kF32});
    EXPECT_EQ(cache.pass({0, 1, 2, 3, 4, 5}), "ok");
    EXPECT_EQ(cache.pass({6}), "ok") << "evicts all before 4";
    return cache;
  };
  expect_refused([&] { return filled(kDocumented); }, Remove{0, 4, 6}, "not_supported");
  PositionalCase cache = filled(kDocumented);
  EXPECT_TRUE(offsets_of(cache.run(Remove{0, 4, 6})).empty()) << "checked before the keys move";
  EXPECT_EQ(cache.code(Remove{0, 5, 6}), "ok") << "4 and 5 are left: all that 6 would see";
  EXPECT_EQ(cache.code(Remove{0, 4, kMaxPosition}), "ok") << "to the end never refuses";

  PositionalCase quirky = filled(kOriginal);
  EXPECT_EQ(quirky.code(Remove{0, 4, 6}), "ok");
  EXPECT_EQ(quirky.held(0)[0], 4) << "alone, without what its window needs";
}

TEST_P(PositionalDocumented, RowsThatDoNotMoveKeepTheirBitsOK65) {
  const auto shifted = [&](Profile profile) {
    PositionalCase cache = ready(causal(), profile, kAdd, {2, 4, 8, kF32});
    Put put = cache.rows(4);
    put.k.floats()[2] = -0.0F;  // plus 0 it is no longer negative
    EXPECT_EQ(cache.code(StartForward{{0, 1, 0, 2}, {0, 0, 1, 0}}), "ok");
    EXPECT_EQ(cache.code(put), "ok");
    EXPECT_EQ(offsets_of(cache.run(Remove{0, 0, 1})), (Calls{{-1, 0, -1}}));
    const auto keys = cache.keys();
    EXPECT_EQ(keys[1], 1);
    EXPECT_EQ(keys[2], 0);
    EXPECT_EQ(keys[3], 3);
    return std::signbit(keys[2]);
  };
  EXPECT_TRUE(shifted(kDocumented));
  EXPECT_FALSE(shifted(kOriginal));
}

TEST_P(PositionalDocumented, AnEndBehindTheLastTokenNeedsNoShiftFunctionOK66) {
  const auto filled = [&](Profile profile, std::string_view config) {
    PositionalCase cache = ready(causal(), profile, config, {1, 4, 4, kF32});
    EXPECT_EQ(cache.pass({0, 1, 2}), "ok");
    return cache;
  };
  for (const std::string_view config : {std::string_view("{}"), kAdd}) {
    PositionalCase cache = filled(kDocumented, config);
    const Observation seen = cache.run(Remove{0, 1, 3});
    EXPECT_FALSE(seen.error);
    EXPECT_TRUE(offsets_of(seen).empty());
    EXPECT_EQ(cache.held(0), Positions({0, -1, -1, -1}));
  }
  PositionalCase quirky = filled(kOriginal, "{}");
  EXPECT_EQ(quirky.code(Remove{0, 1, 3}), "not_supported");
  EXPECT_EQ(quirky.held(0), Positions({0, -1, -1, -1}));
}

TEST_P(PositionalDocumented, NothingMovesBeforeEveryKeyCanOK66) {
  for (const auto& [config, code] :
       {std::pair{R"({})", "not_supported"},
        std::pair{R"({"shift":{"kind":"fail","message":"worn out"}})", "other:worn out"}}) {
    const auto filled = [&](Profile profile) {
      PositionalCase cache = ready(causal(), profile, config, {1, 4, 4, kF32});
      EXPECT_EQ(cache.pass({0, 1, 2}), "ok");
      return cache;
    };
    expect_refused([&] { return filled(kDocumented); }, Remove{0, 0, 1}, code);
    PositionalCase quirky = filled(kOriginal);
    EXPECT_EQ(quirky.code(Remove{0, 0, 1}), code);
    EXPECT_EQ(quirky.held(0), Positions({-1, 0, 1, -1}));
    EXPECT_EQ(quirky.keys(), std::vector<float>({1, 2, 3, 0}));
  }
}

TEST_P(PositionalDocumented, ASharedLaterCellStopsARemovalBeforeItBeginsOK67) {
  const auto shared = [&](Profile profile) {
    PositionalCase cache = ready(causal(), profile, kAdd, {2, 3, 4, kF32});
    EXPECT_EQ(cache.pass({0, 1, 2}), "ok");
    EXPECT_EQ(cache.code(CopyPrefix{0, 1, 3}), "ok");
    EXPECT_EQ(cache.pass({3}), "ok");
    return cache;
  };
  constexpr std::string_view kShared =
      "other:shifting cells shared by multiple sequences not supported";
  expect_refused([&] { return shared(kDocumented); }, Remove{0, 0, 1}, kShared);
  PositionalCase alone = shared(kDocumented);
  EXPECT_EQ(alone.code(Remove{0, 1, 3}), "ok") << "shared cells inside the range are fine";
  EXPECT_EQ(alone.held(0), Positions({0, -1, -1, 1, -1, -1}));

  PositionalCase quirky = shared(kOriginal);
  EXPECT_EQ(quirky.code(Remove{0, 0, 1}), kShared);
  EXPECT_EQ(quirky.held(0), Positions({-1, 1, 2, 3, -1, -1}));
}

TEST_P(PositionalDocumented, AnInvertedRangeIsRefusedOK68) {
  const auto filled = [&](Profile profile) {
    PositionalCase cache = ready(causal(), profile, kAdd, {1, 4, 4, kF32});
    EXPECT_EQ(cache.pass({0, 1, 2}), "ok");
    return cache;
  };
  expect_refused([&] { return filled(kDocumented); }, Remove{0, 3, 1}, "out_of_range");
  expect_refused([&] { return filled(kDocumented); }, Remove{7, 3, 1}, "out_of_range");
  PositionalCase quirky = filled(kOriginal);
  EXPECT_EQ(offsets_of(quirky.run(Remove{0, 3, 1})), (Calls{{2, 2}}));
  EXPECT_EQ(quirky.held(0), Positions({0, 3, 4, -1}));
}

TEST_P(PositionalDocumented, AnEmptyRangeDoesNothingOK68) {
  const auto filled = [&](Profile profile, std::string_view config) {
    PositionalCase cache = ready(causal(), profile, config, {1, 4, 4, kF32});
    EXPECT_EQ(cache.pass({0, 1, 2}), "ok");
    return cache;
  };
  for (const std::string_view config : {std::string_view("{}"), kAdd}) {
    PositionalCase cache = filled(kDocumented, config);
    EXPECT_TRUE(offsets_of(cache.run(Remove{0, 1, 1})).empty());
    expect_refused([&] { return filled(kDocumented, config); }, Remove{0, 1, 1}, "ok");
  }
  PositionalCase quirky = filled(kOriginal, kAdd);
  EXPECT_EQ(offsets_of(quirky.run(Remove{0, 1, 1})), (Calls{{0, 0}}));
  EXPECT_EQ(filled(kOriginal, "{}").code(Remove{0, 1, 1}), "not_supported");
}

INSTANTIATE_TEST_SUITE_P(Every, PositionalDocumented,
                         testing::ValuesIn(contracts().subjects_without_card(causal())),
                         variant_name);

}  // namespace
}  // namespace kvo::positional
