// tools/workers/isolated.hpp: a case that a process has died of, each subject in a process of its
// own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "properties/runner/run_case.hpp"
#include "tools/workers/process.hpp"

namespace kvo::tools {

/// Turns the frames of crashes into lines of their subjects' traces: "function at file:line",
/// innermost first, up to the harness's call of the subject. The process that crashed was forked
/// from this one, so that addresses are the same.
void name_frames(CaseResult& result);

/// The file name of a failing script: subject, case, law and profile.
[[nodiscard]] std::string file_name(const CaseResult& result, const SubjectResult& subject,
                                    Profile profile);

/// How a process that had `subject` and its baseline to run has come to its end, said of the
/// subject. `baseline_dies`: how the baseline dies by itself; empty: it does not.
[[nodiscard]] Verdict verdict_of(const Death& death, const Subject& subject,
                                 const std::string& baseline_dies = {});
/// The subject that gets the verdict of a death that does not repeat: the one that started the
/// crashed thread, or was at work. Subjects of a case share memory, so that a fault of one can show
/// in another: a guest gets it before other subjects, the baseline last. Null: no subject of the
/// plan.
[[nodiscard]] const Subject* blamed(const Death& death, const CasePlan& plan);
/// What is known of a case that ended even the process that isolated it.
[[nodiscard]] CaseResult lost_case(std::uint64_t index, const Death& death,
                                   std::span<const Subject* const> subjects);

/// How cases are isolated.
struct Isolating {
  std::uint64_t shrink_attempts = 0;
  std::chrono::duration<double> shrink_time{0};  ///< of the script of each subject; 0: any
  Limits limits = {};
  /// The death of the process that the subjects shared; null: there was none. A death that does not
  /// repeat is reported as such.
  const Death* first = nullptr;
  /// Runs the case for the subjects of that plan alone, or the baseline; null: run_case. Where
  /// there is one, a baseline that is no subject is not reported.
  std::function<CaseResult(const CasePlan& alone)> run = nullptr;
};

/// Runs a case, each subject in a process of its own: a crash, an end, a hang, or memory that it
/// has used up is its verdict, with the shrunk script where the plan has operations, and says
/// nothing about the others. Throws std::runtime_error when a process died with no subject at work.
[[nodiscard]] CaseResult run_case_isolated(std::uint64_t index, const CasePlan& plan,
                                           const Isolating& how);

/// run_script in a process of its own.
[[nodiscard]] Verdict run_script_isolated(const CasePlan& plan, const Subject& subject,
                                          const Script& script, Limits limits);

}  // namespace kvo::tools
