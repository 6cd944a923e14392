#include "tools/workers/isolated.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"
#include "reference/contract/subject/op_stream.hpp"
#include "reference/layered/cache.hpp"
#include "tools/workers/crash_guard.hpp"

namespace kvo::tools {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

/// Before an operation; false: the operation fails.
using Deed = std::function<bool(const Op& op)>;

// A correct cache, but before each operation something is done.
class Doing final : public Session {
 public:
  Doing(std::unique_ptr<Session> correct, Deed deed)
      : correct_(std::move(correct)), deed_(std::move(deed)) {}
  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    if (!deed_(op)) return {.error = fail(Code::kFull, "cache")};
    return correct_->apply(op, probe);
  }

 private:
  std::unique_ptr<Session> correct_;
  Deed deed_;
};

const Subject& sound() {
  return *contracts().find_subject("layered.vector@reference");
}

// Each session has a copy of the deed.
Subject doing(const Subject& correct, const Deed& deed) {
  return {correct.kind, "doing", "does something before its operations",
          [&correct, deed](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            auto opened = correct.open(setup);
            if (!opened) return opened.error();
            return std::make_unique<Doing>(std::move(*opened), deed);
          }};
}

Subject doing(bool (*before_advance)()) {
  return doing(sound(), [=](const Op& op) {
    return op.as<layered::Advance>() == nullptr || before_advance();
  });
}

CasePlan plan_of(const Subject& baseline, std::vector<const Subject*> subjects) {
  return {.kind = sound().kind,
          .name = "case",
          .baseline = &baseline,
          .subjects = std::move(subjects),
          .ops = []() -> std::unique_ptr<OpStream> {
            return std::make_unique<ListedOps>(Script{
                Op::of(layered::New{1, 1, 1}), Op::of(layered::New{2, 1, 1}),
                Op::of(layered::Len{0}), Op::of(layered::Advance{0}), Op::of(layered::Len{0})});
          }};
}

CaseResult run_isolated(const CasePlan& plan, const Death* first = nullptr) {
  return run_case_isolated(
      0, plan,
      {.shrink_attempts = 200, .limits = {.silence = std::chrono::seconds(1)}, .first = first});
}

TEST(Isolated, ABaselineThatDiesHasItsScriptToo) {
  const Subject baseline = doing([] { return raise(SIGKILL) == 0; });
  const CaseResult record = run_isolated(plan_of(baseline, {&sound()}));
  ASSERT_EQ(record.subjects.size(), 2U);
  EXPECT_EQ(record.subjects[0].subject, "layered.vector@doing");
  EXPECT_EQ(record.subjects[0].verdict.outcome, Outcome::kDied);
  EXPECT_THAT(record.subjects[0].verdict.text(), HasSubstr("op 3 advance: "));
  ASSERT_TRUE(record.subjects[0].shrunk.has_value());
  EXPECT_THAT(
      record.subjects[0].shrunk->script,
      ElementsAre(testing::Field(&ScriptLine::text, R"({"op":"advance","args":{"cache":0}})")));
  EXPECT_EQ(record.subjects[1].verdict.outcome, Outcome::kVacuous)
      << "there is no baseline to compare with";
}

TEST(Isolated, ASubjectWithoutABaselineThatDiesHasItsScriptToo) {
  const Subject subject = doing([]() -> bool { _exit(0); });
  CasePlan plan = plan_of(sound(), {&subject});
  plan.baseline = nullptr;
  const CaseResult record = run_isolated(plan);
  ASSERT_EQ(record.subjects.size(), 1U);
  EXPECT_EQ(record.subjects[0].verdict.outcome, Outcome::kDied);
  ASSERT_TRUE(record.subjects[0].shrunk.has_value());
  EXPECT_EQ(record.subjects[0].shrunk->script.size(), 1U);
}

constexpr double kSilence = kIsSanitized ? 0.5 : 0.1;  // seconds

// `die` ends the process in the third operation.
void expect_evidence(const Subject& reference, void (*die)(), const std::string& how) {
  const Subject subject = doing(reference, [=, operations = 0](const Op& /*op*/) mutable {
    if (++operations == 3) die();
    return true;
  });
  const Law& law = *contracts().find_law("agrees_with_reference");
  CasePlan plan =
      random_case(contracts(), law, {&subject}, 1, 0, Profile::kOriginal, Scale::kSmall);
  for (std::uint64_t index = 1; script_until(plan, 4).size() < 4; ++index)
    plan = random_case(contracts(), law, {&subject}, 1, index, Profile::kOriginal, Scale::kSmall);
  const std::string guilty{script_until(plan, 2).back().kind().name};
  const CaseResult answer =
      run_case_isolated(0, plan,
                        {.shrink_attempts = how.starts_with("hung") ? 1U : 30U,
                         .limits = {.silence = std::chrono::duration<double>(kSilence)}});
  SCOPED_TRACE(plan.kind->name() + " " + how);
  const SubjectResult& died = answer.subjects.back();
  EXPECT_EQ(died.subject, subject.name());
  EXPECT_EQ(died.verdict.outcome, Outcome::kDied);
  EXPECT_THAT(died.verdict.text(), HasSubstr("op 2 " + guilty + ": " + how));
  ASSERT_TRUE(died.shrunk.has_value());
  EXPECT_LE(died.shrunk->operations, 3U);
  EXPECT_THAT(died.shrunk->verdict.text(), HasSubstr(how));
  ASSERT_TRUE(died.log.has_value());
  ASSERT_EQ(died.log->size(), died.shrunk->operations + 1);

  std::string log;
  for (const std::string& line : *died.log) log += line + "\n";
  auto reader = traces::LogReader::in_memory("log", log, contracts().kind_finder());
  auto header = reader.next_case();
  ASSERT_TRUE(header && *header) << "a log that cannot be read";
  EXPECT_EQ((*header)->kind, plan.kind);
}

class EveryKind : public testing::TestWithParam<const CacheKind*> {};

TEST_P(EveryKind, ADeathHasItsOperationScriptAndLog) {
  const Subject& reference = contracts().reference_of(*GetParam());
  expect_evidence(reference, std::abort, kIsSanitized ? "" : "crashed (SIGABRT)");
  expect_evidence(
      reference, [] { _exit(0); }, "exited with status 0");
  expect_evidence(
      reference,
      [] {
        while (true) pause();
      },
      "hung (no answer for ");
}

std::vector<const CacheKind*> generated_kinds() {
  std::vector<const CacheKind*> kinds;
  for (const CacheKind* kind : contracts().kinds())
    if (contracts().generator_of(*kind) != nullptr) kinds.push_back(kind);
  return kinds;
}

std::string name_of(const testing::TestParamInfo<const CacheKind*>& kind) {
  std::string name = kind.param->name();
  std::ranges::replace(name, '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Each, EveryKind, testing::ValuesIn(generated_kinds()), name_of);

TEST(Isolated, ADeathThatDoesNotRepeatIsToldOfTheSubjectAtWork) {
  const Subject subject = doing([] { return true; });
  const CasePlan plan = plan_of(sound(), {&subject});
  const Death first{.how = "crashed (SIGSEGV)",
                    .subject = &subject,
                    .op = sound().kind->operation("advance"),
                    .op_index = 3};
  const CaseResult record = run_isolated(plan, &first);
  const SubjectResult& died = record.subjects.back();
  EXPECT_EQ(died.verdict.outcome, Outcome::kDied);
  EXPECT_THAT(died.verdict.text(),
              testing::MatchesRegex("op 3 advance: crashed \\(SIGSEGV\\); died, not repeated.*"));
  EXPECT_THAT(died.group(record.law), EndsWith("died, not repeated"));
  ASSERT_TRUE(died.shrunk.has_value());
  EXPECT_FALSE(died.repeats());
  EXPECT_EQ(died.shrunk->operations, 4U);
  EXPECT_EQ(record.subjects.front().verdict.outcome, Outcome::kAgrees)
      << record.subjects.front().subject;
}

// Several subjects share the memory of a process: a fault may show in another one.
TEST(Isolated, WhoComesFromOutsideIsBlamedBeforeWhoWasAtWork) {
  Subject guest = doing([] { return true; });
  guest.guest = true;
  const CasePlan plan = plan_of(sound(), {&sound(), &guest});
  EXPECT_EQ(blamed({.subject = &sound()}, plan), &guest);
  EXPECT_EQ(blamed({.subject = nullptr}, plan), &guest);
  EXPECT_EQ(blamed({.thread_of = sound().name()}, plan), &sound());
  guest.guest = false;
  EXPECT_EQ(blamed({.subject = &sound()}, plan), &guest) << "the baseline is blamed last";
  EXPECT_EQ(blamed({.subject = nullptr}, plan), nullptr);
  const auto* nowhere = reinterpret_cast<const Subject*>(0xAAAA);  // NOLINT: overwritten
  EXPECT_EQ(blamed({.subject = nowhere}, plan), nullptr);
}

// A subject that damages what it shares with its baseline dies of it in the baseline's operation.
TEST(Isolated, ABaselineThatDiesBesideASubjectOnlyIsNotBlamed) {
  static bool damaged = false;
  const Subject baseline = doing([] { return !damaged || raise(SIGKILL) == 0; });
  const Subject subject = doing([] { return damaged = true; });
  CasePlan plan = plan_of(baseline, {&subject});
  plan.ops = []() -> std::unique_ptr<OpStream> {
    return std::make_unique<ListedOps>(Script{
        Op::of(layered::New{1, 1, 1}), Op::of(layered::Advance{0}), Op::of(layered::Advance{0})});
  };
  const CaseResult record = run_isolated(plan);
  EXPECT_EQ(record.subjects[0].verdict.outcome, Outcome::kAgrees);
  EXPECT_EQ(record.subjects[1].verdict.outcome, Outcome::kDied);
  EXPECT_THAT(record.subjects[1].verdict.text(), HasSubstr("while another subject"));
}

TEST(Isolated, ASubjectThatUsesUpAllMemoryIsBrokenWhereItsBaselineDoesNot) {
  const Subject subject = doing([]() -> bool { throw std::bad_alloc(); });
  CasePlan plan = plan_of(sound(), {&subject});
  const SubjectResult judged = run_isolated(plan).subjects.back();
  EXPECT_EQ(judged.verdict.outcome, Outcome::kBroken);
  EXPECT_THAT(judged.verdict.text(), HasSubstr("the baseline alone does not"));
  ASSERT_TRUE(judged.shrunk.has_value());
  EXPECT_EQ(judged.shrunk->operations, 1U);
  plan.baseline = &subject;
  EXPECT_EQ(run_isolated(plan).subjects.front().verdict.outcome, Outcome::kOutOfMemory)
      << "a case that the baseline has no memory for says nothing";
}

// What does not answer alike each time is said not to repeat.
TEST(Isolated, AFailureThatDoesNotRepeatIsToldAsSuch) {
  static bool done_before = false;
  done_before = false;
  const Subject subject = doing([] { return std::exchange(done_before, true); });
  const CasePlan plan = plan_of(sound(), {&subject});
  const CaseResult result = run_case(plan, {.attempts = 50});
  const SubjectResult& judged = result.subjects.back();
  ASSERT_TRUE(judged.shrunk.has_value()) << judged.verdict.text();
  EXPECT_FALSE(judged.repeats());
  EXPECT_EQ(judged.shrunk->operations, 4U) << "up to the failure, as it is";
}

}  // namespace
}  // namespace kvo::tools
