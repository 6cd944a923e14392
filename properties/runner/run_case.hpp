// properties/runner/run_case.hpp: one case from its plan to its verdicts, shrunk scripts included.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  LockstepOptions options = {};
  const Subject* baseline = nullptr;  ///< the reference; null: only oracles and records judge
  std::vector<const Subject*> subjects = {};
  /// The reference of a kind, for reports on caches inside of subjects; null: none are made.
  std::function<const Subject&(const CacheKind&)> reference_of = nullptr;
  /// The oracle of the kind, for sentences about a mismatch (explained); null: it has none.
  MakeOracle history = nullptr;
  /// Opens the operations from the beginning; deterministic.
  std::function<std::unique_ptr<OpStream>()> ops = nullptr;
};

/// A script that a subject fails, as small as it could be made.
struct Repro {
  traces::Case script;
  /// Agrees where the subject does not answer alike each time.
  Verdict verdict = {};
  /// Of the script before it was made smaller.
  Verdict before = {};
  /// Which operation of the script put there what differs: "21 is k[batch 1, position 0, dim 0] of
  /// op 3 update".
  std::vector<std::string> origins = {};
  /// Where the cache inside of the subject goes wrong: told_inside.
  std::vector<std::string> inside = {};
};

struct SubjectResult {
  std::string subject;
  Verdict verdict = {};
  Evidence evidence = {};
  Timings timings = {};
  /// Where a recording judges and the subject fails: who of subject, reference and recording agree.
  std::optional<std::string> sides = std::nullopt;
  std::optional<Repro> repro = std::nullopt;  ///< for a failed verdict
  /// The seed of the further schedule that it failed in.
  std::optional<std::uint64_t> schedule = std::nullopt;
};

/// A difference between a recorded log and profile documented that a quirk explains.
struct Attribution {
  std::uint64_t op_index = 0;  ///< operation at which it shows, from 0
  std::string op;              ///< that operation's name
  QuirkInfo quirk;
};

struct CaseResult {
  std::string name;
  std::string kind;
  std::string_view law = {};
  std::uint64_t operations = 0;
  Labels labels = {};
  std::vector<Figure> figures = {};
  std::vector<SubjectResult> subjects = {};
  std::vector<Attribution> attributions = {};  ///< of a recorded case, in profile documented
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
  /// Whoever expects the subject to end the process judges in another one.
  std::function<Verdict(const CasePlan&, const Subject&, const Script&)> judge = run_script;
};

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
};

/// The smallest script found that `subject` fails with the symptom that it fails `script` with.
/// Where that is an error, and a query before it shows other values, those are the symptom.
/// Requires  shrink.judge(plan, subject, script) fails.
[[nodiscard]] Smaller smaller_case(const CasePlan& plan, const Subject& subject, Script script,
                                   const ShrinkOptions& shrink);

/// A failing script with what the baseline observes of it, and what reports tell of it. `run`:
/// false runs nothing in this process, and records nothing.
[[nodiscard]] Repro repro_of(const Smaller& smaller, const Subject& subject, bool run = true);

/// Both.
[[nodiscard]] Repro shrink_case(const CasePlan& plan, const Subject& subject, Script script,
                                const ShrinkOptions& shrink);

}  // namespace kvo
