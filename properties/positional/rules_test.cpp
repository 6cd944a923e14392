// What the contract refuses in both profiles, and rules about types and sizes.
#include <array>
#include <cstring>
#include <limits>

#include "properties/contracts.hpp"
#include "properties/positional/rules_case.hpp"
#include "reference/contract/values/numeric.hpp"

namespace kvo::positional {
namespace {

using PositionalRules = PositionalTest;

constexpr StorageType kF32 = StorageType::kF32;

Put filled(const Shape& k, const Shape& v) {
  return {counting(k, 50), counting(v, 60)};
}

std::vector<std::uint16_t> halves(const Tensor& tensor) {
  std::vector<std::uint16_t> bits(tensor.bytes.size() / sizeof(std::uint16_t));
  std::memcpy(bits.data(), tensor.bytes.data(), tensor.bytes.size());
  return bits;
}

// ---- Refusals ----

TEST_P(PositionalRules, InitAndSetConfigAreCheckedAndDoneOnceOK8OK15) {
  for (const Profile profile : kProfiles) {
    PositionalCase cache = open(causal(), profile);
    EXPECT_EQ(cache.code(SetConfig{-1, false, MaskType::kUnset, {}}), "precondition");
    EXPECT_EQ(cache.code(SetConfig{2, false, MaskType::kUnset, 0}), "precondition") << "no wrapper";
    EXPECT_EQ(cache.code(Init{-1, 8, 4, kF32}), "precondition");
    EXPECT_EQ(cache.code(Init{1, -1, 4, kF32}), "precondition");
    EXPECT_EQ(cache.code(Init{1, 8, 0, kF32}), "precondition");
    EXPECT_EQ(cache.code(Init{1, 8, -4, kF32}), "precondition");
    EXPECT_EQ(cache.code(Init{std::int64_t{1} << 31, 1, 1, kF32}), "precondition");
    EXPECT_EQ(cache.code(Init{1, std::int64_t{1} << 31, 1, kF32}), "precondition");
    EXPECT_EQ(cache.code(Init{1, 1, std::int64_t{1} << 31, kF32}), "precondition");
    EXPECT_EQ(cache.code(Init{1 << 16, 1 << 16, 1, kF32}), "precondition") << "2^32 cells";
    EXPECT_EQ(cache.code(SetConfig{2, false, MaskType::kUnset, {}}), "ok") << "nothing changed";
    EXPECT_EQ(cache.code(SetConfig{4, false, MaskType::kUnset, {}}), "precondition");
    EXPECT_EQ(cache.code(Init{1, kMaxPosition, 4, kF32}), "precondition") << "2^31 when rounded";
    EXPECT_EQ(cache.code(Init{1, 8, 4, kF32}), "ok");
    const auto started = [&] {
      PositionalCase made = ready(causal(), profile, "{}", {1, 8, 4, kF32});
      EXPECT_EQ(made.pass({0}), "ok");
      return made;
    };
    expect_refused(started, Init{1, 8, 4, kF32}, "precondition");
    expect_refused(started, Init{2, 4, 4, StorageType::kF16}, "precondition");
    expect_refused(started, SetConfig{2, false, MaskType::kUnset, {}}, "precondition");
  }
}

TEST_P(PositionalRules, AMemoryBelowTheWindowIsRefusedOK13) {
  for (const Profile profile : kProfiles) {
    const CacheKind& swa_mem = kind_of(MemberKind::kSwaMem);
    PositionalCase cache = open(swa_mem, profile, R"({"window":4,"memory":2})");
    EXPECT_EQ(cache.code(Init{1, 16, 4, kF32}), "precondition");
    EXPECT_EQ(cache.code(Init{2, 16, 4, kF32}), "ok") << "two sequences make it 5";
    EXPECT_EQ(cache.pass({0}), "ok");
    EXPECT_EQ(cache.held(0).size(), 14U) << "2 * 5 + 4";
  }
}

TEST_P(PositionalRules, ABatchOutsideTheDomainIsRefusedOK6) {
  for (const Profile profile : kProfiles) {
    const auto started = [&] {
      PositionalCase cache = ready(swa(), profile, R"({"window":2})", {1, 8, 4, kF32});
      EXPECT_EQ(cache.pass({0, 1}), "ok");
      return cache;
    };
    expect_refused(started, StartForward{{2, 3}, {0}}, "precondition");
    expect_refused(started, StartForward{{2}, {0, 0}}, "precondition");
    expect_refused(started, StartForward{{2, -1}, {0, 0}}, "precondition");
    expect_refused(started, StartForward{{kMaxPosition}, {0}}, "precondition");
    expect_refused(started, StartForward{{2}, {0}, false, {{1}}}, "precondition");
    expect_refused(started, StartForward{{2}, {0}, false, {{-1}}}, "precondition");
    expect_refused(started, StartForward{{-1}, {0}, true}, "precondition");
    PositionalCase cache = started();
    EXPECT_EQ(cache.pass({kMaxPosition - 1}), "ok") << "the largest there is";
    EXPECT_EQ(cache.seen(), SeenKeys({{3}}));
  }
}

TEST_P(PositionalRules, RowsThatDoNotFitAreRefusedOK45OK50) {
  for (const Profile profile : kProfiles) {
    const auto started = [&] {
      PositionalCase cache = ready(causal(), profile, "{}", {1, 8, 4, kF32});
      EXPECT_EQ(cache.code(StartForward{{0, 1}, {0, 0}}), "ok");
      EXPECT_EQ(cache.code(filled({2, 2, 1}, {2, 2, 3})), "ok");
      return cache;
    };
    const Put other = filled({2, 2, 1}, {2, 2, 3});
    for (const Shape& shape :
         {Shape{1, 2, 1}, Shape{3, 2, 1}, Shape{2, 1, 1}, Shape{2, 2, 2}, Shape{2, 2},
          Shape{2, 2, 1, 1}, Shape{0, 2, 1}, Shape{2, 0, 1}, Shape{2, 2, 0}, Shape{4}})
      expect_refused(started, Put{counting(shape, 50), other.v}, "precondition");
    for (const Shape& shape :
         {Shape{1, 2, 3}, Shape{2, 1, 3}, Shape{2, 2, 1}, Shape{2, 6}, Shape{2, 2, 0}})
      expect_refused(started, Put{other.k, counting(shape, 50)}, "precondition");
    for (const DType dtype : {DType::kI32, DType::kF16, DType::kBF16}) {
      expect_refused(started, Put{make_tensor(other.k.shape, dtype), other.v}, "precondition");
      expect_refused(started, Put{other.k, make_tensor(other.v.shape, dtype)}, "precondition");
    }
    PositionalCase cache = started();
    EXPECT_EQ(cache.code(SetLayer{1}), "ok");
    EXPECT_EQ(cache.code(Get{}), "precondition") << "a layer without storage";
    for (const Shape& shape : {Shape{3, 1, 1}, Shape{2, 0, 1}, Shape{2, 1, 0}})
      EXPECT_EQ(cache.code(filled(shape, shape)), "precondition");
    EXPECT_EQ(cache.code(Get{}), "precondition") << "still without";
    EXPECT_EQ(cache.code(filled({2, 1, 4}, {2, 1, 1})), "ok") << "each layer has its own shape";
  }
}

TEST_P(PositionalRules, PositionsStayInTheirDomainOK6OK60) {
  for (const Profile profile : kProfiles) {
    const auto started = [&] {
      PositionalCase cache = ready(causal(), profile, kAdd, {2, 8, 4, kF32});
      EXPECT_EQ(cache.pass({0, 3, 5}), "ok");
      EXPECT_EQ(cache.code(CopyPrefix{0, 1, 1}), "ok");
      return cache;
    };
    expect_refused(started, Remove{0, -4, 1}, "precondition");
    expect_refused(started, Remove{0, std::numeric_limits<std::int32_t>::min(), 4}, "precondition");
    PositionalCase cache = started();
    EXPECT_EQ(cache.code(Remove{0, -2, 1}), "ok") << "3 becomes 0";
    EXPECT_EQ(cache.held(0)[1], 0);
    EXPECT_EQ(cache.held(0)[2], 2);
  }
  const auto started = [&] {
    PositionalCase cache = ready(causal(), Profile::kOriginal, kAdd, {1, 8, 4, kF32});
    EXPECT_EQ(cache.pass({0, 1}), "ok");
    return cache;
  };
  expect_refused(started, Remove{0, kMaxPosition, 1}, "precondition");
  expect_refused(started, Remove{0, kMaxPosition - 1, 0}, "precondition");
  EXPECT_EQ(started().code(Remove{0, kMaxPosition - 1, 1}), "ok") << "1 becomes the largest";
}

TEST_P(PositionalRules, AnOperationOfAnotherCacheIsRefused) {
  for (const Profile profile : kProfiles) {
    const auto started = [&] {
      PositionalCase cache = ready(causal(), profile, "{}", {1, 8, 4, kF32});
      EXPECT_EQ(cache.pass({0}), "ok");
      return cache;
    };
    expect_refused(started, SetLayerType{0}, "precondition");
    expect_refused(started, UnderlyingCache{}, "precondition");
    expect_refused(started, EncoderCached{}, "precondition");
  }
}

// ---- What is accepted, and seen ----

TEST_P(PositionalRules, PositionsInAnyOrderAreAcceptedOK24) {
  for (const Profile profile : kProfiles) {
    PositionalCase cache = ready(causal(), profile, "{}", {1, 8, 2, kF32});
    EXPECT_EQ(cache.pass({5, 2, 5, 9}), "ok") << "also more tokens than max_batch";
    EXPECT_EQ(cache.pass({2}), "ok");
    EXPECT_EQ(cache.seen(), SeenKeys({{2, 5}}));
    const Positions held = cache.held(0);
    EXPECT_EQ(Positions(held.begin(), held.begin() + 5), Positions({5, 2, 5, 9, 2}));
  }
}

TEST_P(PositionalRules, ACopiedPrefixIsAllThatTheOtherSequenceHasOK52) {
  for (const Profile profile : kProfiles) {
    PositionalCase cache = ready(causal(), profile, "{}", {2, 8, 4, kF32});
    EXPECT_EQ(cache.pass({0, 1, 2}), "ok");
    EXPECT_EQ(cache.pass({0, 1, 7}, {1, 1, 1}), "ok");
    EXPECT_EQ(cache.code(CopyPrefix{0, 1, 2}), "ok");
    const auto first_six = [&](std::int64_t sequence) {
      Positions held = cache.held(sequence);
      held.resize(6);
      return held;
    };
    EXPECT_EQ(first_six(0), Positions({0, 1, 2, -1, -1, -1}));
    EXPECT_EQ(first_six(1), Positions({0, 1, -1, -1, -1, -1})) << "also beyond len";
    EXPECT_EQ(cache.code(CopyPrefix{0, 1, 99}), "ok");
    EXPECT_EQ(cache.held(1), cache.held(0)) << "all of it";
    EXPECT_EQ(cache.code(CopyPrefix{0, 1, 1}), "ok");
    EXPECT_EQ(cache.held(1)[1], -1) << "a token that both had";
    EXPECT_EQ(cache.held(0)[1], 1) << "stays the source's";
  }
}

TEST_P(PositionalRules, ACopyOfNothingEmptiesTheOtherSequenceOK53) {
  for (const Profile profile : kProfiles) {
    for (const CopyPrefix& copy :
         {CopyPrefix{0, 1, 0}, CopyPrefix{0, 1, -3}, CopyPrefix{2, 1, 5}}) {
      PositionalCase cache = ready(causal(), profile, "{}", {3, 8, 4, kF32});
      EXPECT_EQ(cache.pass({0, 1, 0, 1}, {0, 0, 1, 1}), "ok");
      EXPECT_EQ(cache.code(copy), "ok");
      const Positions left = cache.held(1);
      EXPECT_EQ(std::ranges::count(left, -1), std::ssize(left)) << copy.len;
      EXPECT_EQ(cache.held(0)[1], 1);
    }
  }
}

// ---- Batches of nothing ----

TEST_P(PositionalRules, ABatchOfNothingIsRefusedWhereCellsAreFreeOK29) {
  for (const Profile profile : kProfiles) {
    // Sequence 1 has something to evict, and keeps it.
    const auto started = [&] {
      PositionalCase cache = ready(swa(), profile, R"({"window":2})", {2, 8, 4, kF32});
      EXPECT_EQ(cache.pass({0, 1, 2, 3, 4}, {1, 1, 1, 1, 1}), "ok");
      return cache;
    };
    expect_refused(started, StartForward{}, "precondition");
    EXPECT_EQ(started().held(1)[0], 0);
    PositionalCase full = ready(causal(), profile, "{}", {1, 2, 4, kF32});
    EXPECT_EQ(full.pass({0, 1}), "ok");
    EXPECT_EQ(full.code(StartForward{}), "full");
    EXPECT_EQ(full.code(Get{}), profile == Profile::kOriginal ? "precondition" : "ok");
    PositionalCase nothing = ready(causal(), profile, "{}", {1, 0, 4, kF32});
    EXPECT_EQ(nothing.code(StartForward{}), "full") << "no cells at all";
    EXPECT_EQ(nothing.code(StartForward{{0}, {0}}), "full");
  }
}

// ---- Types ----

TEST_P(PositionalRules, RowsAreRoundedToTheStorageTypeOK46) {
  const std::vector<float> odd{1 + 0x1p-8F, 1 + 0x3p-8F, 1 + 0x1p-11F, 1 + 0x3p-11F};
  for (const StorageType type : {StorageType::kBf16, StorageType::kF16}) {
    for (const bool permuted : {false, true}) {
      PositionalCase cache = open(causal(), Profile::kDocumented);
      EXPECT_EQ(cache.code(SetConfig{0, permuted, MaskType::kUnset, {}}), "ok");
      EXPECT_EQ(cache.code(Init{1, 2, 4, type}), "ok");
      EXPECT_EQ(cache.code(StartForward{{0, 1}, {0, 0}}), "ok");
      const Tensor put = tensor_of({2, 1, 2}, odd);
      EXPECT_EQ(cache.code(Put{put, put}), "ok");
      const Get::Returns shown = cache.values(Get{});
      EXPECT_EQ(shown.k->dtype, dtype_of(type));
      std::vector<std::uint16_t> want{0x3F80, 0x3F82, 0x3F80, 0x3F80};
      if (type == StorageType::kF16) want = {0x3C04, 0x3C0C, 0x3C00, 0x3C02};
      EXPECT_EQ(halves(*shown.k), want);
      if (permuted) std::swap(want[1], want[2]);
      EXPECT_EQ(halves(*shown.v), want);
      EXPECT_EQ(shown.mask->dtype, DType::kF32) << "its type is its own (OK-36)";
    }
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
      PositionalCase cache = open(causal(), Profile::kDocumented);
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

// Whether a text comes in one pass or token by token, the same is stored of it.
TEST_P(PositionalRules, WhatIsStoredOfARowDoesNotTellHowItCameOK46) {
  constexpr std::int64_t kDim = 40;
  Put all{counting({6, 2, kDim}, 1), counting({6, 2, kDim}, 1'000)};
  for (const StorageType type : {StorageType::kF8E4m3, StorageType::kQ8, StorageType::kQ4}) {
    PositionalCase whole = open(causal(), Profile::kDocumented);
    PositionalCase pieces = open(causal(), Profile::kDocumented);
    if (whole.code(Init{1, 6, 6, type}) == "not_supported") continue;
    EXPECT_EQ(pieces.code(Init{1, 6, 6, type}), "ok");
    EXPECT_EQ(whole.code(StartForward{{0, 1, 2, 3, 4, 5}, {0, 0, 0, 0, 0, 0}}), "ok");
    EXPECT_EQ(whole.code(all), "ok");
    for (std::int32_t token = 0; token < 6; ++token) {
      EXPECT_EQ(pieces.code(StartForward{{token}, {0}}), "ok");
      const auto one = [&](const Tensor& rows) {
        return tensor_of({1, 2, kDim}, rows.floats().subspan(
                                           static_cast<std::size_t>(token * 2 * kDim), 2 * kDim));
      };
      EXPECT_EQ(pieces.code(Put{one(all.k), one(all.v)}), "ok");
    }
    const Get::Returns a = whole.values(Get{});
    const Get::Returns b = pieces.values(Get{});
    EXPECT_EQ(*a.k, *b.k);
    EXPECT_EQ(*a.v, *b.v);
  }
}

TEST_P(PositionalRules, ShiftedKeysAreRoundedToTheStorageTypeOK65) {
  PositionalCase cache =
      ready(causal(), Profile::kDocumented, R"({"shift":{"kind":"add","scale":-1}})",
            {1, 4, 4, StorageType::kBf16});
  EXPECT_EQ(cache.code(StartForward{{0, 1, 2}, {0, 0, 0}}), "ok");
  const Tensor put = tensor_of({3, 1, 1}, std::vector<float>{1, 256, 258});
  EXPECT_EQ(cache.code(Put{put, put}), "ok");
  EXPECT_EQ(cache.code(Remove{0, 0, 1}), "ok");
  const Get::Returns shown = cache.values(Get{});
  // 257 and 259 lie between two: to even.
  EXPECT_EQ(halves(*shown.k), (std::vector<std::uint16_t>{bf16_of(1), bf16_of(256), bf16_of(260)}));
  EXPECT_EQ(halves(*shown.v), (std::vector<std::uint16_t>{bf16_of(1), bf16_of(256), bf16_of(258)}))
      << "values never move";
}

TEST_P(PositionalRules, AMaskInHalvesShowsTheSameOK36) {
  PositionalCase cache = open(swa(), Profile::kOriginal, R"({"window":1,"backend":
    {"cache_padding":4,"permuted_v":false,"mask_dtype":"f16"}})");
  EXPECT_EQ(cache.code(Init{1, 8, 4, kF32}), "ok");
  EXPECT_EQ(cache.pass({0, 1, 2}), "ok");
  const Get::Returns shown = cache.values(Get{});
  EXPECT_EQ(shown.k->dtype, DType::kF32);
  EXPECT_EQ(shown.mask->dtype, DType::kF16);
  EXPECT_EQ(shown.mask->shape, Shape({3, 4}));
  constexpr std::uint16_t kUnseen = 0xFC00;
  EXPECT_EQ(halves(*shown.mask),
            (std::vector<std::uint16_t>{0, kUnseen, kUnseen, kUnseen, 0, 0, kUnseen, kUnseen,
                                        kUnseen, 0, 0, kUnseen}));
  EXPECT_EQ(cache.code(SetCausal{{1}}), "ok");
  EXPECT_EQ(halves(*cache.values(Get{}).mask)[6], 0) << "a list keeps the type";
}

INSTANTIATE_TEST_SUITE_P(Every, PositionalRules,
                         testing::ValuesIn(contracts().subjects_without_card(causal())),
                         variant_name);

}  // namespace
}  // namespace kvo::positional
