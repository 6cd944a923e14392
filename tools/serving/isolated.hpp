// tools/serving/isolated.hpp: a case that a process has died of, each subject in a process of its
// own.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "properties/runner/run_case.hpp"
#include "tools/run_file.hpp"
#include "tools/serving/process.hpp"

namespace kvo::tools {

/// A failing script as a log, for the process that takes the case to write.
struct ScriptRecord {
  std::uint64_t subject = 0;  ///< whose it is: an index of CaseRecord::subjects
  std::string file = {};      ///< a name without a folder
  std::vector<std::string> lines = {};
};
BOOST_DESCRIBE_STRUCT(ScriptRecord, (), (subject, file, lines))

/// Where a process crashed, as addresses that name the same code in the process that takes the
/// case.
struct CrashRecord {
  std::uint64_t subject = 0;
  std::vector<std::uint64_t> frames = {};
};
BOOST_DESCRIBE_STRUCT(CrashRecord, (), (subject, frames))

/// A quirk that a recorded case shows.
struct QuirkRecord {
  std::string rule;
  std::string quirk;
  std::uint64_t op_index = 0;
  std::string op;
};
BOOST_DESCRIBE_STRUCT(QuirkRecord, (), (rule, quirk, op_index, op))

/// What a process answers of a case.
struct CaseAnswer {
  CaseRecord record = {};
  std::vector<ScriptRecord> scripts = {};
  std::vector<CrashRecord> crashes = {};
  std::vector<QuirkRecord> quirks = {};

  /// CaseRecord::subjects[subject] gets its shrunk script, or what is known of its death.
  void add(std::size_t subject, const Repro& repro);
  void add(std::size_t subject, const Death& death);
};
BOOST_DESCRIBE_STRUCT(CaseAnswer, (), (record, scripts, crashes, quirks))

/// Without scripts.
[[nodiscard]] CaseAnswer answer_of(std::uint64_t index, const CaseResult& result);

/// Puts the crashes of an answer into its record: a line a frame, "function at file:line",
/// innermost first, up to the harness's call of the subject. The process that crashed was forked
/// from this one, so that addresses are the same.
void tell_crashes(CaseAnswer& answer);

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
[[nodiscard]] CaseRecord lost_record(std::uint64_t index, const Death& death,
                                     std::span<const Subject* const> subjects);

/// How cases are isolated.
struct Isolating {
  std::uint64_t shrink_attempts = 0;
  Limits limits = {};
  /// The death of the process that the subjects shared; null: there was none. A death that does not
  /// repeat is reported as such.
  const Death* first = nullptr;
  /// Runs the case for the subjects of that plan alone, or the baseline; null: run_case. Where
  /// there is one, a baseline that is no subject is not told.
  std::function<CaseResult(const CasePlan& alone)> run = nullptr;
};

/// Runs a case, each subject in a process of its own: a crash, an end, a hang, or memory that it
/// has used up is its verdict, with the shrunk script where the plan has operations, and says
/// nothing about the others. Throws std::runtime_error when a process died with no subject at work.
[[nodiscard]] CaseAnswer run_case_isolated(std::uint64_t index, const CasePlan& plan,
                                           const Isolating& how);

/// run_script in a process of its own.
[[nodiscard]] Verdict run_script_isolated(const CasePlan& plan, const Subject& subject,
                                          const Script& script, Limits limits);

}  // namespace kvo::tools
