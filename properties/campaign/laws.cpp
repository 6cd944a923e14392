#include "properties/campaign/laws.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "properties/runner/run_case.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo {
namespace {

enum class Way : std::uint8_t { kRetried, kSkipped, kDeferred };

/// What is done to one operation.
struct Failure {
  Way way = Way::kRetried;
  std::int64_t allocation = 0;  ///< that fails, from 0; of kRetried each does in turn
};

// 0 is the plainest choice. Half of the operations are retried: a skipped one makes a script
// poorer.
Failure drawn(Schedule& schedule) {
  constexpr std::array kWays{Way::kRetried, Way::kSkipped, Way::kDeferred, Way::kRetried};
  // Most operations allocate a few times or not at all.
  constexpr std::array<std::int64_t, 16> kAllocations{0, 0, 0, 0, 1, 1, 1,  2,
                                                      2, 3, 4, 5, 6, 8, 11, 15};
  const Way way = kWays[schedule.choose(kWays.size())];
  if (way == Way::kRetried) return {};
  return {way, kAllocations[schedule.choose(kAllocations.size())]};
}

// The device below a subject draws from the schedule as well, and is given lists of its own.
Schedule schedule_for(const Subject& subject, const Setup& setup) {
  constexpr std::uint64_t kOther = 0xA110CA7E;
  if (!subject.scheduled) return setup.schedule;
  return setup.schedule.seed() ? Schedule(*setup.schedule.seed() ^ kOther) : Schedule();
}

/// One subject on a whole script.
class Trial {
 public:
  Trial(const CasePlan& plan, const Subject& baseline, const Subject& subject,
        const std::vector<Op>& script)
      : only_{&subject},
        script_(script),
        lockstep_(&baseline, only_, plan.setup, failing(plan.options)),
        schedule_(schedule_for(subject, plan.setup)) {}

  Judgement run() {
    for (std::size_t i = 0; i < script_.size() && lockstep_.worthwhile(); ++i) {
      const Failure failure = drawn(schedule_);
      lockstep_.number_next(i);
      if (failure.way == Way::kRetried) {
        step(i);
      } else if (lockstep_.fails(script_[i], failure.allocation)) {
        const std::string which =
            "allocation " + std::to_string(failure.allocation + 1) + " of it fails, then it is ";
        if (failure.way == Way::kSkipped) {
          ++skipped_;
          done_.emplace_back(i, which + "skipped, and so it is in the reference");
        } else {
          done_.emplace_back(i, which + "deferred until after the next operation");
          i = defer(i);
        }
      }
    }
    return judged();
  }

  /// What was done to operations, by their index.
  [[nodiscard]] const std::vector<std::pair<std::size_t, std::string>>& done() const {
    return done_;
  }

 private:
  void step(std::size_t i) {
    const auto failures = [&] { return lockstep_.participants().front().evidence.failures; };
    const std::uint64_t before = failures();
    (void)lockstep_.step(script_[i]);
    const std::uint64_t failed = failures() - before;
    if (failed == 1) done_.emplace_back(i, "allocation 1 of it fails, then it is retried");
    if (failed > 1)
      done_.emplace_back(i, "allocations 1 to " + std::to_string(failed) +
                                " of it fail in turn, and each time it is retried");
  }

  static LockstepOptions failing(LockstepOptions options) {
    options.allocations = Allocations::kFailEach;
    return options;
  }

  // The number of the last operation that was carried out.
  std::size_t defer(std::size_t i) {
    ++deferred_;
    const bool last = i + 1 == script_.size();
    if (!last) {
      lockstep_.number_next(i + 1);
      step(i + 1);
    }
    lockstep_.number_next(i);
    if (lockstep_.worthwhile()) step(i);
    return last ? i : i + 1;
  }

  Judgement judged() {
    Judgement judgement = judgement_of(lockstep_.participants().front());
    judgement.evidence.skipped = skipped_;
    judgement.evidence.deferred = deferred_;
    if (judgement.verdict.failed() && !judgement.subject->scheduled)
      judgement.verdict.choices = schedule_.taken();
    if (judgement.verdict.outcome == Outcome::kAgrees && judgement.evidence.failures == 0)
      judgement.verdict = {.outcome = Outcome::kVacuous,
                           .reason = "no allocation was made to fail"};
    return judgement;
  }

  std::array<const Subject*, 1> only_;
  const std::vector<Op>& script_;
  Lockstep lockstep_;
  Schedule schedule_;
  std::uint64_t skipped_ = 0;
  std::uint64_t deferred_ = 0;
  std::vector<std::pair<std::size_t, std::string>> done_;
};

}  // namespace

std::vector<ScriptLine> FailedAllocations::shown(const CasePlan& plan, const Subject& subject,
                                                 const std::vector<Op>& script,
                                                 const Verdict& verdict) const {
  std::vector<ScriptLine> lines = lines_of(script, verdict);
  if (plan.baseline == nullptr) return lines;
  Trial trial(plan, *plan.baseline, subject, script);
  (void)trial.run();
  for (const auto& [at, words] : trial.done()) {
    if (!lines[at].mark.ends_with('!')) lines[at].mark += "!";
    lines[at].notes.push_back(words);
  }
  return lines;
}

LawRun FailedAllocations::run(const CasePlan& plan, const Subject* baseline,
                              std::span<const Subject* const> subjects, OpStream& ops) const {
  KVO_CHECK(baseline != nullptr);
  LawRun result;
  std::vector<Op> script;
  Lockstep leading(baseline, {}, plan.setup, plan.options);
  while (leading.worthwhile()) {
    auto op = ops.next();
    if (!op) break;
    ops.saw(*op, leading.step(*op, ops.expected()), result.labels);
    script.push_back(std::move(*op));
  }
  result.operations = script.size();
  result.figures = ops.figures();
  if (std::ranges::find(subjects, baseline) == subjects.end())
    result.judgements.push_back(judgement_of(*leading.baseline()));
  for (const Subject* subject : subjects)
    result.judgements.push_back(
        concerns(*subject)
            ? Trial(plan, *baseline, *subject, script).run()
            : Judgement{.subject = subject,
                        .verdict = {.outcome = Outcome::kNotSupported,
                                    .reason = "promises nothing after a failed allocation"}});
  return result;
}

std::vector<const Law*> general_laws() {
  // Here each operation is carried out once for every allocation that it makes.
  constexpr std::uint64_t kShortScript = 30;
  static const LockstepLaw kAgrees("agrees_with_reference",
                                   "no script tells a subject from its reference", kLongScript, {});
  static const FailedAllocations kFails(
      "failed_allocation_changes_nothing",
      "an operation whose allocation fails leaves everything as it was, repeated or not",
      kShortScript);
  return {&kAgrees, &kFails};
}

}  // namespace kvo
