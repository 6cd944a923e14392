// properties/runner/case_result.hpp: what a case came to. Processes, run files, JSON, JUnit, the
// gate and the console all have it from these records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "properties/runner/timings.hpp"
#include "properties/runner/verdict.hpp"
#include "reference/contract/subject/op_stream.hpp"

namespace kvo {

struct HistogramRecord {
  std::uint64_t bucket = 0;  ///< width 1/16 of a power of two, in nanoseconds
  std::uint64_t count = 0;
};
BOOST_DESCRIBE_STRUCT(HistogramRecord, (), (bucket, count))

/// How long the calls of one operation took.
struct TimingRecord {
  std::string op;
  std::uint64_t total_nanoseconds = 0;
  std::uint64_t payload_bytes = 0;
  std::vector<HistogramRecord> histogram = {};
};
BOOST_DESCRIBE_STRUCT(TimingRecord, (), (op, total_nanoseconds, payload_bytes, histogram))

[[nodiscard]] TimingRecord timing_record(std::string_view op, const Durations& durations);
[[nodiscard]] Durations durations_of(const TimingRecord& record);
/// Adds the times of `more`, operation by operation.
void merge(std::vector<TimingRecord>& into, const std::vector<TimingRecord>& more);

/// A line of a failing script, as the law runs it.
struct ScriptLine {
  static constexpr bool kLean = true;
  /// '>' the operation that fails, '+' added by the law, '~' changed by the law, '!' an allocation
  /// of it fails.
  std::string mark = {};
  std::optional<std::uint64_t> op_index = std::nullopt;  ///< in the script; absent: added
  std::string text = {};                                 ///< {"op":..,"args":..}
  std::vector<std::string> notes = {};                   ///< below it
};
BOOST_DESCRIBE_STRUCT(ScriptLine, (), (mark, op_index, text, notes))

/// The smallest script found that a subject fails.
struct Shrunk {
  static constexpr bool kLean = true;
  std::string law = {};  ///< the simplest one that it fails
  std::uint64_t operations = 0;
  bool cut_short = false;   ///< a smaller one was not looked for: its time was over
  Verdict verdict = {};     ///< agrees where the subject does not answer alike each time
  std::string config = {};  ///< what is not default, as JSON
  /// Which operation stored what differs: "21 is k[batch 1, position 0, dim 0] of op 3 update".
  std::vector<std::string> origins = {};
  std::vector<std::string> inside = {};  ///< where a cache inside of the subject goes wrong
  /// Of a simulated device or a law that draws: "choices 0 2", "seed 7"; absent: the plain one.
  std::optional<std::string> schedule = std::nullopt;
  std::string rules = {};               ///< that the operation of the verdict cites: "RS-4, RS-5"
  std::vector<ScriptLine> script = {};  ///< where there are many: those up to the verdict's
};
BOOST_DESCRIBE_STRUCT(Shrunk, (),
                      (law, operations, cut_short, verdict, config, origins, inside, schedule,
                       rules, script))

/// How one subject came out of a case.
/// A shared library of a process, and by how much the addresses in it are moved there.
struct LoadedLibrary {
  std::string path = {};
  std::uint64_t moved_by = 0;
};
BOOST_DESCRIBE_STRUCT(LoadedLibrary, (), (path, moved_by))

struct SubjectResult {
  static constexpr bool kLean = true;
  std::string subject = {};
  Verdict verdict = {};
  Evidence evidence = {};
  /// Of a recorded case: which of subject, reference and recording agree.
  std::optional<std::string> sides = std::nullopt;
  /// Seed of the further schedule that it failed in.
  std::optional<std::uint64_t> schedule = std::nullopt;
  std::optional<Shrunk> shrunk = std::nullopt;       ///< of a failure
  std::optional<std::string> repro = std::nullopt;   ///< file of the shrunk script
  std::optional<std::string> repeat = std::nullopt;  ///< the command that shows the failure again
  /// Of a process that died: a sanitizer's report or a backtrace, and what else is known.
  std::optional<std::vector<std::string>> trace = std::nullopt;
  /// Between processes: the shrunk script as a log, and where it crashed, as addresses that name
  /// the same code in the process that receives the result.
  std::optional<std::vector<std::string>> log = std::nullopt;
  std::optional<std::vector<std::uint64_t>> frames = std::nullopt;
  /// Of frames: the library of the subject, which the process that receives the result lacks.
  std::optional<LoadedLibrary> library = std::nullopt;
  std::vector<TimingRecord> timings = {};

  /// Whether a shrunk script repeats the failure.
  [[nodiscard]] bool repeats() const { return shrunk && shrunk->verdict.failed(); }
  /// The verdict that a reader is to look at: of the shrunk script where it repeats the failure.
  [[nodiscard]] const Verdict& last_verdict() const {
    return repeats() ? shrunk->verdict : verdict;
  }
  /// The same of the law; `law`: of the case.
  [[nodiscard]] std::string last_law(std::string_view law) const {
    return repeats() ? shrunk->law : std::string(law);
  }
  /// That law and the symptom: equal for failures of one fault.
  [[nodiscard]] std::string group(std::string_view law) const;
};
BOOST_DESCRIBE_STRUCT(SubjectResult, (),
                      (subject, verdict, evidence, sides, schedule, shrunk, repro, repeat, trace,
                       log, frames, library, timings))

/// A difference between a recorded log and profile documented that a quirk explains.
struct Attribution {
  std::string rule;
  std::string quirk;
  std::uint64_t op_index = 0;  ///< operation at which it shows, from 0
  std::string op;              ///< that operation's name
};
BOOST_DESCRIBE_STRUCT(Attribution, (), (rule, quirk, op_index, op))

struct CaseResult {
  std::uint64_t index = 0;
  std::string name = {};
  std::string kind = {};
  std::string law = {};
  /// What is not default, as JSON; absent where no subject fails.
  std::optional<std::string> config = std::nullopt;
  std::uint64_t operations = 0;
  std::vector<std::string> labels = {};
  std::vector<Figure> figures = {};
  std::vector<Attribution> attributions = {};  ///< of a recorded case, in profile documented
  std::vector<SubjectResult> subjects = {};
};
BOOST_DESCRIBE_STRUCT(CaseResult, (),
                      (index, name, kind, law, config, operations, labels, figures, attributions,
                       subjects))

extern template const Type& type_of<CaseResult>();  // in case_result.cpp

}  // namespace kvo
