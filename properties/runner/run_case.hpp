// properties/runner/run_case.hpp: one case from its plan to its verdicts, shrunk scripts included.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "properties/runner/case_result.hpp"
#include "properties/runner/law.hpp"
#include "properties/runner/shrinker.hpp"
#include "traces/log/kvlog.hpp"

namespace kvo {

/// What is to be run: a function of the run's configuration and the case's index.
struct CasePlan {
  const CacheKind* kind = nullptr;
  std::string name = {};  ///< unique within the run, fit for a file name
  std::string note = {};
  std::string repeat = {};  ///< the command that runs this case again
  Setup setup = {};
  /// In how many schedules each script is judged; more than one only where a subject draws from it.
  std::uint64_t schedules = 1;
  const Law* law = &agreement();
  /// Laws that a failing script is tried by first, the simplest first.
  std::vector<const Law*> simpler_laws = {};
  LockstepOptions options = {};
  const Subject* baseline = nullptr;  ///< the reference; null: only oracles and records judge
  /// Keeps the baseline alive where the plan made it (lead).
  std::shared_ptr<const Subject> led = nullptr;
  std::vector<const Subject*> subjects = {};
  /// The reference of a kind, for reports on caches inside of subjects; null: none are made.
  std::function<const Subject&(const CacheKind&)> reference_of = nullptr;
  /// The oracle of the kind, for sentences about a mismatch (explained); null: it has none.
  MakeOracle history = nullptr;
  /// Set: the case has figures of what the baseline's lookups missed, by this history; what their
  /// names begin with.
  std::optional<std::string> lookup_figures = std::nullopt;
  /// Opens the operations from the beginning; deterministic.
  std::function<std::unique_ptr<OpStream>()> ops = nullptr;
};

/// Judges one subject of a plan by its law on `script`.
[[nodiscard]] Verdict run_script(const CasePlan& plan, const Subject& subject,
                                 const Script& script);

/// The setup of a plan in the schedule of that number: 0 is its own, which every other one follows
/// from where it is a seed.
[[nodiscard]] Setup in_schedule(Setup setup, std::uint64_t number);

/// How a failing script is made smaller.
struct ShrinkOptions {
  std::uint64_t attempts = 20'000;  ///< most scripts to run; 0 keeps the script as it is
  bool without_memory = true;       ///< false: not of a subject that lacks memory
  /// What the scripts of a case may take together; 0: any time.
  std::chrono::duration<double> time{0};
  /// Whether arguments follow the handles that the baseline returns in a smaller script
  /// (LinkedScript). The baseline then runs in this process.
  bool follows_handles = true;
  /// Whoever expects the subject to end the process judges in another one.
  std::function<Verdict(const CasePlan&, const Subject&, const Script&)> judge = run_script;
};

/// Whether the verdict on a subject depends on the schedule of the setup.
[[nodiscard]] bool draws(const CasePlan& plan, const Subject& subject);

/// Without a shrunk script.
[[nodiscard]] SubjectResult result_of(const Judgement& judgement);

/// Runs a case, and shrinks the script of a subject that fails.
[[nodiscard]] CaseResult run_case(const CasePlan& plan, const ShrinkOptions& shrink);

/// The operations of a plan up to and including `last`, as the baseline's answers lead to them.
[[nodiscard]] Script script_until(const CasePlan& plan, std::uint64_t last);

/// A failing script made smaller.
struct Smaller {
  CasePlan plan;  ///< with the simplest config and schedule
  Script script;
  Verdict before;  ///< of the script as it was
  Verdict verdict = {};
  bool cut_short = false;  ///< time was over before nothing helped any more
};

/// The smallest script found that `subject` fails with the symptom that it fails `script` with.
/// Where that is an error, and a query before it shows other values, those are the symptom.
/// Requires  shrink.judge(plan, subject, script) fails.
[[nodiscard]] Smaller smaller_case(const CasePlan& plan, const Subject& subject, Script script,
                                   const ShrinkOptions& shrink);

/// What a schedule says to a reader: "seed 7", "choices 0 2"; nothing of the plain one.
[[nodiscard]] std::optional<std::string> schedule_text(const Schedule& schedule);

}  // namespace kvo
