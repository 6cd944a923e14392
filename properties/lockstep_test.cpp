#include "properties/lockstep.hpp"

#include <array>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "properties/all_subjects.hpp"
#include "reference/contract/check.hpp"
#include "reference/layered/contract.hpp"
#include "reference/layered/vector_cache.hpp"

namespace kvo {
namespace {

using layered::Geometry;
using layered::Mode;
using layered::VectorCache;

// A cache that misbehaves in advance().
template <class Advance>
Subject faulty(Advance advance) {
  class Cache final : public VectorCache {
   public:
    Cache(const Geometry& geometry, Mode mode, Advance fault)
        : VectorCache(geometry, mode), fault_(std::move(fault)) {}
    [[nodiscard]] Status advance() override { return fault_(); }

   private:
    Advance fault_;
  };
  return layered::make_subject("test", "",
                               [advance](const Geometry& geometry, std::optional<std::uint64_t>,
                                         Mode mode) -> Result<std::unique_ptr<layered::Cache>> {
                                 return std::make_unique<Cache>(geometry, mode, advance);
                               });
}

Verdict verdict_on(const Subject& subject, const std::vector<Op>& ops) {
  const std::array<const Subject*, 2> pair{&reference_of(layered::vector_kind()), &subject};
  Lockstep lockstep(pair, {});
  for (const Op& op : ops) lockstep.step(op);
  return lockstep.participants()[1].verdict;
}

std::vector<Op> advance_once() {
  return {Op::of(layered::New{1, 1, 1}), Op::of(layered::Advance{0}), Op::of(layered::Len{0})};
}

// Objects to every advance, or to nothing.
template <bool kObjects>
class Objector final : public Watch {
 public:
  static std::unique_ptr<Watch> make(const CacheKind& /*kind*/, const Setup& /*setup*/) {
    return std::make_unique<Objector>();
  }
  [[nodiscard]] std::optional<std::string> saw(const Op& op, const Observation& /*seen*/) override {
    if (!kObjects || op.as<layered::Advance>() == nullptr) return std::nullopt;
    return "objection";
  }
};

TEST(Lockstep, AWatchJudgesEveryParticipantByItself) {
  const Subject& reference = reference_of(layered::vector_kind());
  const std::array<const Subject*, 2> pair{&reference, &reference};
  Lockstep lockstep(pair, {}, {.watch = Objector<true>::make});
  for (const Op& op : advance_once()) lockstep.step(op);
  for (const Lockstep::Participant& participant : lockstep.participants()) {
    EXPECT_EQ(participant.verdict.outcome, Outcome::kBroken);
    EXPECT_EQ(participant.verdict.text(), "op 1 advance: objection");
  }
}

TEST(Lockstep, WhatIsWatchedIsNotCompared) {
  const Subject subject = faulty([]() -> Status { return fail(Code::kFull); });
  const std::array<const Subject*, 2> pair{&reference_of(layered::vector_kind()), &subject};
  Lockstep lockstep(pair, {}, {.watch = Objector<false>::make});
  for (const Op& op : advance_once()) lockstep.step(op);
  EXPECT_EQ(lockstep.participants()[1].verdict.outcome, Outcome::kAgrees);
}

TEST(Lockstep, ASubjectThatThrowsIsAVerdict) {
  const Verdict verdict =
      verdict_on(faulty([]() -> Status { throw std::runtime_error("boom"); }), advance_once());
  EXPECT_EQ(verdict.outcome, Outcome::kBroken);
  EXPECT_EQ(verdict.op_index, 1U);
  EXPECT_EQ(verdict.text(), "op 1 advance: threw: boom");
}

TEST(Lockstep, ABrokenInvariantIsAVerdict) {
  const Verdict verdict = verdict_on(faulty([]() -> Status {
                                       KVO_CHECK(1 + 1 == 3);
                                       return {};
                                     }),
                                     advance_once());
  EXPECT_EQ(verdict.outcome, Outcome::kBroken);
  EXPECT_NE(verdict.reason.find("1 + 1 == 3"), std::string::npos);
}

TEST(Lockstep, AWrongValueIsAMismatchWithItsPlace) {
  const Verdict verdict = verdict_on(faulty([]() -> Status { return {}; }), advance_once());
  EXPECT_EQ(verdict.outcome, Outcome::kMismatch);
  EXPECT_EQ(verdict.text(), "op 2 len: len: want 1, got 0");
}

TEST(Lockstep, ErrorsCompareByCodeOnly) {
  const auto want = Observation{.error = fail(Code::kFull, "some words")};
  EXPECT_FALSE(observation_difference(op_kind<layered::Len>(), want,
                                      {.error = fail(Code::kFull, "other words")}));
  EXPECT_TRUE(observation_difference(op_kind<layered::Len>(), want,
                                     {.error = fail(Code::kClosed, "some words")}));
  EXPECT_TRUE(observation_difference(op_kind<layered::Len>(), {.error = fail_other("a")},
                                     {.error = fail_other("b")}));
}

TEST(Lockstep, OthersGoOnWhenOneIsOut) {
  const Subject wrong = faulty([]() -> Status { return {}; });
  const std::array<const Subject*, 3> three{&reference_of(layered::vector_kind()), &wrong,
                                            &reference_of(layered::vector_kind())};
  Lockstep lockstep(three, {});
  for (const Op& op : advance_once()) lockstep.step(op);
  lockstep.step(Op::of(layered::Clear{0}));
  EXPECT_FALSE(lockstep.participants()[1].live());
  EXPECT_TRUE(lockstep.participants()[2].live());
  EXPECT_TRUE(lockstep.worthwhile(false));
}

TEST(Lockstep, ARecordJudgesTheReferenceToo) {
  const std::array<const Subject*, 1> alone{&reference_of(layered::vector_kind())};
  Lockstep lockstep(alone, {});
  lockstep.step(Op::of(layered::New{1, 1, 1}));
  const Observation recorded{
      .returns = std::make_shared<const layered::Len::Returns>(layered::Len::Returns{7})};
  lockstep.step(Op::of(layered::Len{0}), &recorded);
  EXPECT_EQ(lockstep.participants()[0].verdict.text(), "op 1 len: len: want 7, got 0");
}

TEST(Lockstep, MemoryThatNobodyHasIsNoMismatch) {
  const std::array<const Subject*, 1> alone{&reference_of(layered::vector_kind())};
  Lockstep lockstep(alone, {});
  lockstep.step(Op::of(layered::WithCapacity{4, 1 << 20U, 1 << 20U, 1 << 10U}));
  EXPECT_EQ(lockstep.participants()[0].verdict.outcome, Outcome::kOutOfMemory);
}

TEST(Lockstep, AJudgeWithoutMemoryJudgesNobody) {
  const Subject& reference = reference_of(layered::vector_kind());
  const std::array<const Subject*, 2> pair{&reference, &reference};
  Lockstep lockstep(pair, {});
  lockstep.step(Op::of(layered::WithCapacity{4, 1 << 20U, 1 << 20U, 1 << 10U}));
  EXPECT_EQ(lockstep.participants()[0].verdict.outcome, Outcome::kOutOfMemory);
  EXPECT_FALSE(lockstep.participants()[1].verdict.failed());
  EXPECT_FALSE(lockstep.worthwhile(false));
}

TEST(Difference, NamesTheCoordinatesOfTheFirstDifferingElement) {
  constexpr std::array<std::string_view, 3> kAxes{"batch", "position", "dim"};
  Tensor want = make_tensor({2, 3, 4});
  Tensor got = want;
  got.floats()[1 * 12 + 2 * 4 + 3] = 5;
  const auto difference = tensor_difference("k", want, got, kAxes);
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->text(), "k[batch 1, position 2, dim 3]: want 0, got 5");
}

TEST(Difference, SeesBitsAndNotValues) {
  Tensor want = make_tensor({1});
  Tensor got = make_tensor({1});
  got.floats()[0] = -0.0F;
  EXPECT_TRUE(tensor_difference("k", want, got, {}).has_value()) << "-0 is not 0";
  want.floats()[0] = std::numeric_limits<float>::quiet_NaN();
  got.floats()[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(tensor_difference("k", want, got, {}).has_value()) << "the same NaN is the same";
}

}  // namespace
}  // namespace kvo
