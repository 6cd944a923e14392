#include "tools/apart.hpp"

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "properties/contracts.hpp"
#include "reference/contract/subject/op_stream.hpp"
#include "reference/layered/operations.hpp"

namespace kvo::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The reference, but before each advance something is done; if that is false, advance fails.
class Doing final : public Session {
 public:
  Doing(std::unique_ptr<Session> sound, bool (*deed)()) : sound_(std::move(sound)), deed_(deed) {}
  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    if (op.as<layered::Advance>() != nullptr && !deed_())
      return {.error = fail(Code::kFull, "cache")};
    return sound_->apply(op, probe);
  }

 private:
  std::unique_ptr<Session> sound_;
  bool (*deed_)();
};

const Subject& sound() {
  return *contracts().find_subject("layered.vector@reference");
}

Subject doing(bool (*deed)()) {
  return {sound().kind, "doing", "dies of an advance",
          [deed](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            auto opened = sound().open(setup);
            if (!opened) return opened.error();
            return std::make_unique<Doing>(std::move(*opened), deed);
          }};
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

CaseRecord run_apart(const CasePlan& plan) {
  return run_case_apart(0, plan, 200, {.quiet = true},
                        [](const SubjectResult& /*result*/, SubjectRecord& /*record*/) {});
}

TEST(Apart, ABaselineThatDiesHasItsScriptToo) {
  const Subject baseline = doing([] { return raise(SIGKILL) == 0; });
  const CaseRecord record = run_apart(plan_of(baseline, {&sound()}));
  ASSERT_EQ(record.subjects.size(), 2U);
  EXPECT_EQ(record.subjects[0].subject, "layered.vector@doing");
  EXPECT_EQ(record.subjects[0].outcome, Outcome::kDied);
  EXPECT_THAT(record.subjects[0].problem.value_or(""), HasSubstr("op 3 advance: "));
  ASSERT_TRUE(record.subjects[0].shrunk.has_value());
  EXPECT_THAT(record.subjects[0].shrunk->script,
              ElementsAre(R"({"op":"advance","args":{"cache":0}})"));
  EXPECT_EQ(record.subjects[1].outcome, Outcome::kVacuous) << "nobody said what is right";
}

TEST(Apart, ASubjectWithoutABaselineThatDiesHasItsScriptToo) {
  const Subject subject = doing([]() -> bool { _exit(0); });
  CasePlan plan = plan_of(sound(), {&subject});
  plan.baseline = nullptr;
  const CaseRecord record = run_apart(plan);
  ASSERT_EQ(record.subjects.size(), 1U);
  EXPECT_EQ(record.subjects[0].outcome, Outcome::kDied);
  ASSERT_TRUE(record.subjects[0].shrunk.has_value());
  EXPECT_EQ(record.subjects[0].shrunk->script.size(), 1U);
}

// What does not answer alike each time is said not to repeat.
TEST(Apart, AFailureThatDoesNotRepeatIsToldAsSuch) {
  static bool done_before = false;
  done_before = false;
  const Subject subject = doing([] { return std::exchange(done_before, true); });
  const CasePlan plan = plan_of(sound(), {&subject});
  const CaseResult result = run_case(plan, {.attempts = 50});
  ASSERT_TRUE(result.subjects.back().repro.has_value()) << result.subjects.back().verdict.text();
  const ShrunkRecord shrunk = shrunk_record(*result.subjects.back().repro);
  EXPECT_FALSE(shrunk.repeats);
  EXPECT_EQ(shrunk.operations, 4U) << "up to the failure, as it is";
}

}  // namespace
}  // namespace kvo::tools
