// tools/serving/isolated.hpp: a case that a process has died of, each subject in a process of its
// own.
#pragma once

#include <cstdint>
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

/// What a process answers of a case.
struct CaseAnswer {
  CaseRecord record = {};
  std::vector<ScriptRecord> scripts = {};
  std::vector<CrashRecord> crashes = {};

  /// CaseRecord::subjects[subject] gets its shrunk script, or what is known of its death.
  void add(std::size_t subject, const Repro& repro);
  void add(std::size_t subject, const Death& death);
};
BOOST_DESCRIBE_STRUCT(CaseAnswer, (), (record, scripts, crashes))

/// Whether the outcome is that all memory of a case is used up, as opposed to one request too many.
[[nodiscard]] bool used_up(const SubjectRecord& record);
/// As Verdict::lacks_memory.
[[nodiscard]] bool lacks_memory(const SubjectRecord& record);

/// How a process that had `subject` and its baseline to run has come to its end, said of the
/// subject. `baseline_dies`: how the baseline dies by itself; empty: it does not.
[[nodiscard]] Verdict verdict_of(const Death& death, const Subject& subject,
                                 const std::string& baseline_dies = {});
/// Whom a death is told of that does not repeat: whoever started the thread that crashed, or was at
/// work. In a process that several subjects share a fault may show in another one: those from
/// outside this tree come first, the baseline last. Null: nobody of the plan.
[[nodiscard]] const Subject* blamed(const Death& death, const CasePlan& plan);
/// Tells a death that does not repeat of that subject, which did not die when it ran again.
/// `subject`: null where it is none of the case.
void tell_not_repeated(const Death& death, const Subject* subject, SubjectRecord& record);
/// What is known of a case that ended even the process that isolated it.
[[nodiscard]] CaseRecord lost_record(std::uint64_t index, const Death& death,
                                     std::span<const Subject* const> subjects);

/// Runs a case as run_case does, each subject in a process of its own: a crash, an end, a hang, or
/// memory that it has used up is its verdict, with the shrunk script, and says nothing about the
/// others. `first`: the death of the process that they shared; null: there was none. Where it does
/// not repeat, it is told so. Throws std::runtime_error when a process died with no subject at
/// work.
[[nodiscard]] CaseAnswer run_case_isolated(std::uint64_t index, const CasePlan& plan,
                                           std::uint64_t shrink_attempts, Limits limits,
                                           const Death* first = nullptr);

/// run_script in a process of its own.
[[nodiscard]] Verdict run_script_isolated(const CasePlan& plan, const Subject& subject,
                                          const Script& script, Limits limits);

}  // namespace kvo::tools
