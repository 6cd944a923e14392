// What a subject says its rows may be off.
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "properties/runner/lockstep.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/layered/cache.hpp"
#include "reference/layered/vector_cache.hpp"

namespace kvo {
namespace {

using layered::Append;
using layered::Behaviour;
using layered::Geometry;
using layered::VectorCache;

Verdict compared(const Subject& subject, const std::vector<Op>& ops) {
  const std::array<const Subject*, 1> subjects{&subject};
  Lockstep lockstep(&contracts().reference_of(*subject.kind), subjects, {});
  for (const Op& op : ops) lockstep.step(op);
  return lockstep.participants().front().verdict;
}

// Keeps rows as a storage type does; `late`: those of the token before.
Subject rounding(const StorageFormat& format, bool late = false) {
  class Cache final : public VectorCache {
   public:
    Cache(const Geometry& geometry, const Behaviour& behaviour, const StorageFormat& format,
          bool late)
        : VectorCache(geometry, behaviour), format_(format), late_(late) {}
    [[nodiscard]] Status append(const Append& op) override {
      const std::span<const float> k = op.k.floats();
      std::vector<std::byte> stored(stored_bytes(format_, k.size()));
      std::vector<float> rounded(k.size());
      encode(format_, k, stored.data());
      decode(format_, stored.data(), rounded);
      if (late_) std::swap(rounded, before_);
      rounded.resize(k.size());
      Append changed = op;
      changed.k = tensor_of(op.k.shape, rounded);
      return VectorCache::append(changed);
    }

   private:
    StorageFormat format_;
    bool late_;
    std::vector<float> before_;
  };
  Subject subject = layered::make_subject(
      "rounding", "",
      [format, late](const Geometry& geometry, std::optional<std::uint64_t>,
                     const Behaviour& behaviour) -> Result<std::unique_ptr<layered::Cache>> {
        return std::make_unique<Cache>(geometry, behaviour, format, late);
      });
  subject.tolerances = {{"k", format}};
  return subject;
}

// Two tokens of a head of 64.
std::vector<Op> two_rows() {
  Tensor first = make_tensor({64});
  for (std::size_t i = 0; i < 64; ++i) first.floats()[i] = 1.0F + static_cast<float>(i) / 77;
  Tensor second = first;
  for (float& value : second.floats()) value *= -1.5F;
  return {Op::of(layered::New{1, 1, 64}), Op::of(layered::Append{0, 0, first, first}),
          Op::of(layered::Advance{0}),    Op::of(layered::Append{0, 0, second, second}),
          Op::of(layered::Keys{0, 0}),    Op::of(layered::Values{0, 0})};
}

TEST(Tolerance, RowsMayBeOffByWhatTheirStorageCosts) {
  for (const StorageFormat& format :
       {StorageFormat{StorageType::kF16}, StorageFormat{StorageType::kBf16},
        StorageFormat{StorageType::kF8E4m3}, StorageFormat{StorageType::kF8E5m2},
        StorageFormat{StorageType::kQ8, 32}, StorageFormat{StorageType::kQ8, 64, true},
        StorageFormat{StorageType::kQ4, 32}, StorageFormat{StorageType::kQ4, 64, true}}) {
    SCOPED_TRACE(static_cast<int>(format.type));
    Subject subject = rounding(format);
    EXPECT_EQ(compared(subject, two_rows()).outcome, Outcome::kAgrees);
    const Verdict late = compared(rounding(format, true), two_rows());
    EXPECT_EQ(late.outcome, Outcome::kMismatch);
    EXPECT_EQ(late.op, "k");
    subject.tolerances = {{"v", format}};
    EXPECT_EQ(compared(subject, two_rows()).op, "k") << "another operation's";
    subject.tolerances.clear();
    EXPECT_EQ(compared(subject, two_rows()).outcome, Outcome::kMismatch) << "bit by bit";
  }
}

// Judges every operation, and objects to none.
class Counting final : public Oracle {
 public:
  static std::unique_ptr<Oracle> make(const CacheKind& /*kind*/, const Setup& /*setup*/) {
    return std::make_unique<Counting>();
  }
  [[nodiscard]] std::optional<std::string> check(const Op& /*op*/,
                                                 const Observation& /*seen*/) override {
    ++counts_.judged;
    return std::nullopt;
  }
};

TEST(Tolerance, AnOracleGoesByBitsAndDoesNotJudge) {
  const Subject subject = rounding({StorageType::kF16});
  const std::array<const Subject*, 1> subjects{&subject};
  Lockstep lockstep(&contracts().reference_of(*subject.kind), subjects, {},
                    {.oracle = Counting::make});
  for (const Op& op : two_rows()) lockstep.step(op);
  EXPECT_GT(lockstep.baseline()->evidence.rows_judged, 0U);
  EXPECT_EQ(lockstep.participants().front().evidence.rows_judged, 0U);
  EXPECT_EQ(lockstep.participants().front().verdict.outcome, Outcome::kAgrees);
}

TEST(Tolerance, WhatHasNoBoundIsShownAsItsTypeShowsIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto place = [](const StorageFormat& format, const std::vector<float>& want,
                        const std::vector<float>& got) {
    const auto length = static_cast<std::int64_t>(want.size());
    const layered::Keys::Returns wanted{tensor_of({length}, want)};
    const layered::Keys::Returns seen{tensor_of({length}, got)};
    const auto difference =
        first_difference(type_of<layered::Keys::Returns>(), &wanted, &seen, {.stored = &format});
    return difference ? difference->text() : "";
  };
  const StorageFormat f8{StorageType::kF8E4m3};
  EXPECT_EQ(place(f8, {1, 1e6F, -infinity, nan}, {1.0625F, 448, -448, nan}), "");
  EXPECT_EQ(place(f8, {1, 1e6F}, {1, 449}),
            "k[element 1]: want 1e+06, got 449 (1 of 2 elements differ)");
  EXPECT_EQ(place(f8, {nan}, {1}), "k[element 0]: want nan (bits 0x7fc00000), got 1");
  EXPECT_EQ(place(f8, {1}, {nan}), "k[element 0]: want 1, got nan (bits 0x7fc00000)");
  EXPECT_EQ(place(f8, {1, 1, 1}, {1, 1.0626F, 2}),
            "k[element 1]: want 1, got 1.0626 (2 of 3 elements differ)");
  std::vector<float> want(64, 1);
  std::vector<float> got = want;
  want[40] = infinity;
  EXPECT_NE(place({StorageType::kQ8, 32}, want, got), "");
  for (std::size_t i = 32; i < 64; ++i) got[i] = nan;
  EXPECT_EQ(place({StorageType::kQ8, 32}, want, got), "");
  got[0] = nan;
  EXPECT_NE(place({StorageType::kQ8, 32}, want, got), "");
}

}  // namespace
}  // namespace kvo
