#include "properties/runner/lockstep.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "properties/campaign/laws.hpp"
#include "properties/contracts.hpp"
#include "properties/runner/law.hpp"
#include "properties/runner/run_case.hpp"
#include "reference/contract/describe/element.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/sanitizers.hpp"
#include "reference/layered/cache.hpp"
#include "reference/layered/vector_cache.hpp"

namespace kvo {

using layered::Append;
using layered::Behaviour;
using layered::Geometry;
using layered::VectorCache;

namespace {

// A cache that misbehaves in advance().
template <class Advance>
Subject faulty(Advance advance) {
  class Cache final : public VectorCache {
   public:
    Cache(const Geometry& geometry, const Behaviour& behaviour, Advance fault)
        : VectorCache(geometry, behaviour), fault_(std::move(fault)) {}
    [[nodiscard]] Status advance() override { return fault_(); }

   private:
    Advance fault_;
  };
  return layered::make_subject(
      "test", "",
      [advance](const Geometry& geometry, std::optional<std::uint64_t>,
                const Behaviour& behaviour) -> Result<std::unique_ptr<layered::Cache>> {
        return std::make_unique<Cache>(geometry, behaviour, advance);
      });
}

const Subject& reference() {
  return contracts().reference_of(layered::vector_kind());
}

Verdict verdict_on(const Subject& subject, const std::vector<Op>& ops) {
  const std::array<const Subject*, 1> subjects{&subject};
  Lockstep lockstep(&reference(), subjects, {});
  for (const Op& op : ops) lockstep.step(op);
  return lockstep.participants().front().verdict;
}

std::vector<Op> advance_once() {
  return {Op::of(layered::New{1, 1, 1}), Op::of(layered::Advance{0}), Op::of(layered::Len{0})};
}

// Objects to every advance, or to nothing; judges `judged` rows in every operation.
template <bool kObjects, std::uint64_t kJudged = 1>
class Objector final : public Oracle {
 public:
  static std::unique_ptr<Oracle> make(const CacheKind& /*kind*/, const Setup& /*setup*/) {
    return std::make_unique<Objector>();
  }
  [[nodiscard]] std::optional<std::string> check(const Op& op,
                                                 const Observation& /*seen*/) override {
    counts_.judged += kJudged;
    if (!kObjects || op.as<layered::Advance>() == nullptr) return std::nullopt;
    return "objection";
  }
};

TEST(Lockstep, AnOracleJudgesEveryParticipantByItself) {
  const std::array<const Subject*, 1> subjects{&reference()};
  Lockstep lockstep(&reference(), subjects, {}, {.oracle = Objector<true>::make});
  for (const Op& op : advance_once()) lockstep.step(op);
  for (const Lockstep::Participant* participant :
       {lockstep.baseline(), &lockstep.participants().front()}) {
    EXPECT_EQ(participant->verdict.outcome, Outcome::kBroken);
    EXPECT_EQ(participant->verdict.text(), "op 1 advance: objection");
  }
}

TEST(Lockstep, WhatIsLeftToTheOracleIsNotCompared) {
  const Subject subject = faulty([]() -> Status { return fail(Code::kFull); });
  const std::array<const Subject*, 1> subjects{&subject};
  Lockstep lockstep(&reference(), subjects, {},
                    {.oracle = Objector<false>::make, .compare = false});
  for (const Op& op : advance_once()) lockstep.step(op);
  EXPECT_EQ(lockstep.participants().front().verdict.outcome, Outcome::kAgrees);
  EXPECT_EQ(lockstep.participants().front().evidence.compared, 0U);
  EXPECT_EQ(lockstep.participants().front().evidence.rows_judged, 3U);
}

// The verdict of a law on the reference, with its usual three operations.
Verdict verdict_of(const Law& law, const std::vector<Op>& ops) {
  const CasePlan plan{.kind = &layered::vector_kind(), .baseline = &reference()};
  const std::array<const Subject*, 1> subjects{&reference()};
  ListedOps stream(ops);
  return law.run(plan, plan.baseline, subjects, stream).judgements.back().verdict;
}

TEST(Law, ThatJudgedNothingIsVacuous) {
  const LockstepLaw compares("compares", "", 10, {});
  EXPECT_EQ(verdict_of(compares, {}).outcome, Outcome::kVacuous);
  EXPECT_EQ(verdict_of(compares, {}).text(), "vacuous: nothing was judged");
  EXPECT_EQ(verdict_of(compares, advance_once()).outcome, Outcome::kAgrees);

  const LockstepLaw silent("silent", "", 10,
                           {.oracle = Objector<false, 0>::make, .compare = false});
  EXPECT_EQ(verdict_of(silent, advance_once()).outcome, Outcome::kVacuous);
  const LockstepLaw content("content", "", 10, {.oracle = Objector<false>::make, .compare = false});
  EXPECT_EQ(verdict_of(content, advance_once()).outcome, Outcome::kAgrees);

  const FailedAllocations fails("fails", "", 10);
  EXPECT_EQ(verdict_of(fails, {Op::of(layered::Len{0})}).outcome, Outcome::kVacuous)
      << "an operation that allocates nothing";
  EXPECT_EQ(verdict_of(fails, advance_once()).outcome, Outcome::kAgrees);
}

// Takes a state before there is memory to go on; the retry does so again.
Subject hasty() {
  class Cache final : public VectorCache {
   public:
    using VectorCache::VectorCache;
    [[nodiscard]] Status advance() override {
      if (!ahead_) (void)VectorCache::advance();
      ahead_ = true;
      const auto memory = std::make_unique<std::array<char, 64>>();  // may throw
      ahead_ = false;
      return {};
    }

   private:
    bool ahead_ = false;
  };
  return layered::make_subject(
      "test", "",
      [](const Geometry& geometry, std::optional<std::uint64_t>,
         const Behaviour& behaviour) -> Result<std::unique_ptr<layered::Cache>> {
        return std::make_unique<Cache>(geometry, behaviour);
      });
}

Judgement judged_with(const Subject& subject, std::vector<std::uint32_t> choices) {
  const FailedAllocations law("fails", "", 10);
  CasePlan plan{.kind = &layered::vector_kind(), .law = &law, .baseline = &reference()};
  plan.setup.schedule = Schedule(std::move(choices));
  const std::array<const Subject*, 1> subjects{&subject};
  ListedOps ops(
      {Op::of(layered::New{1, 1, 1}), Op::of(layered::Advance{0}), Op::of(layered::Len{0})});
  return law.run(plan, plan.baseline, subjects, ops).judgements.back();
}

TEST(FailedAllocations, ARetryCoversUpWhatOtherWaysShow) {
  EXPECT_EQ(judged_with(hasty(), {}).verdict.outcome, Outcome::kAgrees) << "retried";
  EXPECT_EQ(judged_with(hasty(), {0, 1, 0}).verdict.text(), "op 2 len: len: want 0, got 1")
      << "given up";
  EXPECT_EQ(judged_with(hasty(), {0, 2, 0}).verdict.text(), "op 2 len: len: want 0, got 1")
      << "put off";
}

TEST(FailedAllocations, EvidenceCountsEachWay) {
  const auto evidence = [](std::vector<std::uint32_t> choices) {
    const Judgement judgement = judged_with(reference(), std::move(choices));
    EXPECT_EQ(judgement.verdict.outcome, Outcome::kAgrees) << judgement.verdict.text();
    return judgement.evidence;
  };
  const Evidence retried = evidence({});
  EXPECT_GT(retried.retried, 0U);
  EXPECT_GE(retried.failures, retried.retried);
  EXPECT_EQ(retried.skipped + retried.deferred, 0U);
  EXPECT_EQ(evidence({1, 0}).skipped, 1U);
  EXPECT_EQ(evidence({2, 0}).deferred, 1U);
  EXPECT_EQ(judged_with(reference(), {1, 15}).evidence.skipped, 0U) << "it makes fewer allocations";
}

TEST(FailedAllocations, WhatWasDrawnIsAListOfChoices) {
  const Judgement judgement = judged_with(hasty(), {0, 1, 0});
  ASSERT_TRUE(judgement.verdict.failed());
  EXPECT_EQ(judged_with(hasty(), judgement.verdict.choices).verdict.text(),
            judgement.verdict.text());
}

TEST(Verdict, ASymptomHoldsWhichErrorsDiffer) {
  const auto error = [](const std::string& want, const std::string& got) {
    return Verdict{.outcome = Outcome::kMismatch, .op = "put", .difference = {"error", want, got}};
  };
  const Verdict full = error("full (no room for 3)", "no error");
  EXPECT_EQ(full.symptom(), error("full (no room for 1)", "no error").symptom());
  EXPECT_NE(full.symptom(), error("closed", "no error").symptom());
  EXPECT_EQ(full.signature(), error("closed", "no error").signature());
  EXPECT_TRUE(full.differs_in_error());
  const auto broken = [](const std::string& words) {
    return Verdict{.outcome = Outcome::kBroken, .op = "put", .reason = words};
  };
  EXPECT_EQ(broken("cell 3 is free").symptom(), broken("cell 12 is free").symptom());
  EXPECT_NE(broken("cell 3 is free").symptom(), broken("threw: boom").symptom());
}

TEST(Observation, AskedForAnotherTypeIsABrokenInvariant) {
  const Observation seen{.returns = Record::of(layered::Len::Returns{7})};
  EXPECT_EQ(seen.as<layered::Len::Returns>().len, 7U);
  EXPECT_THROW((void)seen.as<layered::CacheNumber>(), std::logic_error);
  EXPECT_THROW((void)Observation{.error = fail(Code::kFull)}.as<layered::Len::Returns>(),
               std::logic_error)
      << "there are no values";
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

// The reference behind a session that counts how often its invariants are looked at.
class Watched final : public Session {
 public:
  Watched(std::unique_ptr<Session> session, std::uint64_t& looks)
      : session_(std::move(session)), looks_(&looks) {}
  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    return session_->apply(op, probe);
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    ++*looks_;
    return session_->broken_invariant();
  }

 private:
  std::unique_ptr<Session> session_;
  std::uint64_t* looks_;
};

// A cache looks at all that it holds, so that every look in a long script would cost its square.
TEST(Lockstep, InvariantsOfALongScriptAreLookedAtLessOften) {
  std::uint64_t looks = 0;
  Subject watched = reference();
  watched.variant = "watched";
  watched.open = [&looks](const kvo::Setup& setup) -> Result<std::unique_ptr<Session>> {
    return std::make_unique<Watched>(*reference().open(setup), looks);
  };
  const std::array<const Subject*, 1> subjects{&watched};
  Lockstep lockstep(&reference(), subjects, {});
  lockstep.step(Op::of(layered::New{1, 1, 1}));
  for (int i = 1; i < 1'000; ++i) lockstep.step(Op::of(layered::Len{0}));
  EXPECT_EQ(looks, 1'000U) << "of the first thousand operations each";
  looks = 0;
  for (int i = 0; i < 3'200; ++i) lockstep.step(Op::of(layered::Len{0}));
  EXPECT_EQ(looks, 100U) << "every thirty-second operation";
}

TEST(Lockstep, AWrongValueIsAMismatchWithItsPlace) {
  const Verdict verdict = verdict_on(faulty([]() -> Status { return {}; }), advance_once());
  EXPECT_EQ(verdict.outcome, Outcome::kMismatch);
  EXPECT_EQ(verdict.text(), "op 2 len: len: want 1, got 0");
}

TEST(Lockstep, ErrorsCompareByCodeOnly) {
  const auto want = Observation{.error = fail(Code::kFull, "some words")};
  EXPECT_FALSE(observation_difference(want, {.error = fail(Code::kFull, "other words")}));
  EXPECT_TRUE(observation_difference(want, {.error = fail(Code::kClosed, "some words")}));
  EXPECT_TRUE(observation_difference({.error = fail_other("a")}, {.error = fail_other("b")}));
}

TEST(Lockstep, OthersGoOnWhenOneIsOut) {
  const Subject wrong = faulty([]() -> Status { return {}; });
  const std::array<const Subject*, 2> two{&wrong, &reference()};
  Lockstep lockstep(&reference(), two, {});
  for (const Op& op : advance_once()) lockstep.step(op);
  lockstep.step(Op::of(layered::Clear{0}));
  EXPECT_FALSE(lockstep.participants()[0].live());
  EXPECT_TRUE(lockstep.participants()[1].live());
  EXPECT_TRUE(lockstep.worthwhile(false));
}

// A cache that does something to the keys it is given.
Subject harmful(void (*harm)(float* keys, std::size_t count)) {
  class Cache final : public VectorCache {
   public:
    Cache(const Geometry& geometry, const Behaviour& behaviour, void (*harm)(float*, std::size_t))
        : VectorCache(geometry, behaviour), harm_(harm) {}
    [[nodiscard]] Status append(const Append& op) override {
      const Status done = VectorCache::append(op);
      const std::span<const float> k = op.k.floats();
      harm_(const_cast<float*>(k.data()), k.size());  // NOLINT: on purpose
      return done;
    }

   private:
    void (*harm_)(float*, std::size_t);
  };
  return layered::make_subject(
      "test", "",
      [harm](const Geometry& geometry, std::optional<std::uint64_t>,
             const Behaviour& behaviour) -> Result<std::unique_ptr<layered::Cache>> {
        return std::make_unique<Cache>(geometry, behaviour, harm);
      });
}

TEST(Lockstep, ASubjectThatChangesItsArgumentsHarmsNobodyElse) {
  const Subject subject = harmful([](float* keys, std::size_t /*count*/) { keys[1] = 7777; });
  const std::vector<float> row{1, 2};
  const Op append = Op::of(layered::Append{0, 0, tensor_of({2}, row), tensor_of({2}, row)});
  const std::array<const Subject*, 2> subjects{&subject, &reference()};
  Lockstep lockstep(&reference(), subjects, {});
  lockstep.step(Op::of(layered::New{1, 1, 2}));
  lockstep.step(append);
  lockstep.step(Op::of(layered::Keys{0, 0}));
  EXPECT_EQ(lockstep.participants()[0].verdict.outcome, Outcome::kBroken);
  EXPECT_EQ(lockstep.participants()[0].verdict.text(),
            "op 1 append: changed its arguments: k[element 1]: want 2, got 7777 "
            "(1 of 2 elements differ)");
  EXPECT_EQ(lockstep.participants()[1].verdict.outcome, Outcome::kAgrees);
  EXPECT_EQ(append.as<layered::Append>()->k, tensor_of({2}, row)) << "a script holds it";
}

#ifndef KVO_ADDRESS_SANITIZER  // the sanitizer ends the process there
TEST(Lockstep, ASubjectThatWritesBehindItsArgumentsIsBroken) {
  const Subject subject =
      harmful([](float* keys, std::size_t count) { const_cast<volatile float*>(keys)[count] = 7; });
  EXPECT_EQ(verdict_on(subject, {Op::of(layered::New{1, 1, 1}),
                                 Op::of(layered::Append{0, 0, make_tensor({1}), make_tensor({1})})})
                .text(),
            "op 1 append: wrote behind its arguments: k");
}
#endif

TEST(LentArguments, AreCopiedWhereMemoryIsHandedOut) {
  LentArguments arguments;
  const Op length = Op::of(layered::Len{0});
  EXPECT_EQ(&arguments.lend(length), &length);
  for (const std::int64_t size : {0, 1, 3, 1000, 2}) {
    const Op append = Op::of(layered::Append{0, 0, make_tensor({size}), make_tensor({size})});
    const Op& lent = arguments.lend(append);
    EXPECT_NE(lent.as<layered::Append>(), append.as<layered::Append>());
    EXPECT_EQ(lent.as<layered::Append>()->k, append.as<layered::Append>()->k);
    EXPECT_EQ(arguments.damage(), std::nullopt);
  }
}

TEST(Lockstep, ARecordJudgesTheReferenceToo) {
  Lockstep lockstep(&reference(), {}, {});
  lockstep.step(Op::of(layered::New{1, 1, 1}));
  const Observation recorded{.returns = Record::of(layered::Len::Returns{7})};
  lockstep.step(Op::of(layered::Len{0}), &recorded);
  EXPECT_EQ(lockstep.baseline()->verdict.text(), "op 1 len: len: want 7, got 0");
}

TEST(Lockstep, MemoryThatNobodyHasIsNoMismatch) {
  const std::array<const Subject*, 1> alone{&reference()};
  Lockstep lockstep(nullptr, alone, {});
  lockstep.step(Op::of(layered::WithCapacity{4, 1 << 20U, 1 << 20U, 1 << 10U}));
  EXPECT_EQ(lockstep.participants()[0].verdict.outcome, Outcome::kOutOfMemory);
}

TEST(Lockstep, ABaselineWithoutMemoryJudgesNobody) {
  const std::array<const Subject*, 1> subjects{&reference()};
  Lockstep lockstep(&reference(), subjects, {});
  lockstep.step(Op::of(layered::WithCapacity{4, 1 << 20U, 1 << 20U, 1 << 10U}));
  EXPECT_EQ(lockstep.baseline()->verdict.outcome, Outcome::kOutOfMemory);
  EXPECT_FALSE(lockstep.participants()[0].verdict.failed());
  EXPECT_FALSE(lockstep.worthwhile(false));
}

// The reference may make several requests of what another cache asks for at once, and a machine
// without threads says nothing about a cache.
TEST(Lockstep, ARequestAboveTheLimitIsNoMismatchUnlessItIsAbsurd) {
  const auto verdict_of_request = [](std::size_t bytes) {
    return verdict_on(faulty([bytes]() -> Status {
                        ::operator delete(::operator new(bytes));
                        return {};
                      }),
                      {Op::of(layered::New{1, 1, 1}), Op::of(layered::Advance{0})});
  };
  const Verdict more = verdict_of_request(std::size_t{5} << 30U);
  EXPECT_EQ(more.outcome, Outcome::kOutOfMemory);
  EXPECT_EQ(more.reason, kAsksForMore);
  EXPECT_EQ(verdict_of_request(std::size_t{1} << 50U).outcome, Outcome::kMismatch);
}

TEST(Lockstep, AMachineWithoutThreadsIsNoMismatch) {
  const Subject subject = faulty([]() -> Status {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  });
  EXPECT_EQ(
      verdict_on(subject, {Op::of(layered::New{1, 1, 1}), Op::of(layered::Advance{0})}).outcome,
      Outcome::kOutOfMemory);
}

struct Shown {
  static constexpr std::array<std::string_view, 3> kAxes{"batch", "position", "dim"};
  Tensor k;
};
KVO_DESCRIBE(Shown, (k, "keys"))

TEST(Difference, NamesTheCoordinatesOfTheFirstDifferingElement) {
  Tensor want = make_tensor({2, 3, 4});
  Tensor got = want;
  got.floats()[1 * 12 + 2 * 4 + 3] = 5;
  const auto difference = first_difference(Shown{want}, Shown{got});
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->text(),
            "k[batch 1, position 2, dim 3]: want 0, got 5 (1 of 24 elements differ)");
}

TEST(Difference, FloatsAreWrittenAsPeopleDo) {
  EXPECT_EQ(float_text(0.1F), "0.1");
  EXPECT_EQ(float_text(std::nextafter(0.1F, 1.0F)), "0.10000001");
  EXPECT_EQ(float_text(-0.0F), "-0");
  EXPECT_EQ(float_text(-std::numeric_limits<float>::infinity()), "-inf");
  EXPECT_EQ(float_text(std::bit_cast<float>(0x7FC12345U)), "nan (bits 0x7fc12345)");
  Tensor half = make_tensor({2}, DType::kF16);
  const std::uint16_t tenth = f16_of(0.1F);
  std::memcpy(half.bytes.data() + sizeof tenth, &tenth, sizeof tenth);
  EXPECT_EQ(element_text(half, 1), "0.099975586");
}

struct Doubles {
  std::vector<double> numbers;
};
KVO_DESCRIBE(Doubles, (numbers, "of 64 bits"))

TEST(Difference, ComparesDoublesBitByBit) {
  const Doubles want{{1, 0, std::nextafter(0.1, 1.0)}};
  EXPECT_FALSE(first_difference(want, want).has_value());
  const auto difference = first_difference(want, Doubles{{1, -0.0, 0.1}});
  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->text(), "numbers[1]: want 0, got -0 (2 of 3 elements differ)");
  EXPECT_EQ(payload_bytes(type_of<Doubles>(), &want), 3 * sizeof(double));
}

struct Rounded {
  static constexpr double kRecordedTolerance = 1e-12;
  std::vector<double> numbers;
};
KVO_DESCRIBE(Rounded, (numbers, "results of a library's function"))

TEST(Difference, OnlyRecordedDoublesMayBeALittleOff) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto differ = [](double want, double got, Wanted wanted) {
    const Rounded wanted_one{{want}};
    const Rounded got_one{{got}};
    return first_difference(type_of<Rounded>(), &wanted_one, &got_one, {.wanted = wanted})
        .has_value();
  };
  EXPECT_FALSE(differ(3, 3 + 2e-12, Wanted::kRecorded));
  EXPECT_TRUE(differ(3, 3 + 2e-12, Wanted::kComputed));
  EXPECT_TRUE(differ(3, 3 + 4e-12, Wanted::kRecorded));
  EXPECT_TRUE(differ(0, 1e-300, Wanted::kRecorded));
  EXPECT_TRUE(differ(3, kNan, Wanted::kRecorded));
  EXPECT_TRUE(differ(kInfinity, 3, Wanted::kRecorded));
  EXPECT_TRUE(differ(3, kInfinity, Wanted::kRecorded));
  EXPECT_FALSE(differ(kNan, kNan, Wanted::kRecorded));
  const Doubles exact{{3}};
  const Doubles off{{3 + 2e-12}};
  EXPECT_TRUE(first_difference(type_of<Doubles>(), &exact, &off, {.wanted = Wanted::kRecorded})
                  .has_value());
}

TEST(Difference, SeesBitsAndNotValues) {
  Tensor want = make_tensor({1});
  Tensor got = make_tensor({1});
  got.floats()[0] = -0.0F;
  EXPECT_TRUE(first_difference(Shown{want}, Shown{got}).has_value()) << "-0 is not 0";
  want.floats()[0] = std::numeric_limits<float>::quiet_NaN();
  got.floats()[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(first_difference(Shown{want}, Shown{got}).has_value()) << "the same NaN is the same";
}

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
