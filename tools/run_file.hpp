// tools/run_file.hpp: what a run writes: JSON Lines, one line a case, appended as cases finish.
//
// The first line describes the run; a run is (version, configuration, seed), so two runs of the
// same first line hold the same lines up to "timings". A killed run loses at most the case in
// flight: resuming cuts off a torn last line and goes on behind the last whole one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/runner/run_case.hpp"
#include "tools/result_file.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::tools {

/// Everything else that the cases of a run depend on.
struct RunOptions : boost::json::object {
  using object::object;
  RunOptions(boost::json::object members) : object(std::move(members)) {}  // NOLINT: is one
  [[nodiscard]] boost::json::value to_json() const { return *this; }
  bool from_json(const boost::json::value& in) {
    if (in.is_object()) *this = in.get_object();
    return in.is_object();
  }
};

/// The first line of a run file.
struct RunHeader {
  std::int64_t format_version = kFormatVersion;
  std::string kvoracle;  ///< version of the command
  std::string command;   ///< "check", "run"
  std::uint64_t seed = 0;
  Profile profile = Profile::kOriginal;
  std::vector<std::string> subjects;
  RunOptions options;
};
BOOST_DESCRIBE_STRUCT(RunHeader, (),
                      (format_version, kvoracle, command, seed, profile, subjects, options))

struct HistogramRecord {
  std::uint64_t bucket = 0;  ///< width 1/16 of a power of two, in nanoseconds
  std::uint64_t count = 0;
};
BOOST_DESCRIBE_STRUCT(HistogramRecord, (), (bucket, count))

struct TimingRecord {
  std::string op;
  std::uint64_t total_nanoseconds = 0;
  std::uint64_t payload_bytes = 0;
  std::vector<HistogramRecord> histogram = {};
};
BOOST_DESCRIBE_STRUCT(TimingRecord, (), (op, total_nanoseconds, payload_bytes, histogram))

/// The smallest script found that a subject fails.
struct ShrunkRecord {
  std::uint64_t operations = 0;
  std::string problem;                                  ///< as it shows there
  std::optional<Difference> difference = std::nullopt;  ///< absent: it is broken or died
  bool repeats = true;                                  ///< false: run again, the subject agreed
  std::vector<std::string> origins;                     ///< which operations put there what differs
  std::vector<std::string> inside;  ///< where a cache inside of the subject goes wrong
  /// Of a simulated device, where it is not the plain one: "choices 0 2", "seed 7".
  std::optional<std::string> schedule = std::nullopt;
  std::string rules;                ///< that the guilty operation cites: "RS-4, RS-5"
  std::uint64_t guilty = 0;         ///< its number in the script
  std::vector<std::string> script;  ///< a line an operation; none where there are too many to read
};
BOOST_DESCRIBE_STRUCT(ShrunkRecord, (),
                      (operations, problem, difference, repeats, origins, inside, schedule, rules,
                       guilty, script))

/// What a script says of its schedule, for people.
[[nodiscard]] std::optional<std::string> schedule_text(const traces::CaseHeader& header);

struct SubjectRecord {
  std::string subject;
  Outcome outcome = Outcome::kAgrees;
  std::optional<std::string> problem = std::nullopt;    ///< absent when it agrees
  std::optional<Difference> difference = std::nullopt;  ///< that the problem tells in words
  std::string alike = {};                               ///< failures of one fault have the same
  /// Of a recorded case: who of subject, reference and recording agree.
  std::optional<std::string> sides = std::nullopt;
  std::optional<std::string> repro = std::nullopt;  ///< file of the shrunk script
  std::optional<ShrunkRecord> shrunk = std::nullopt;
  std::optional<std::string> repeat = std::nullopt;  ///< the command that shows the failure again
  /// Of a process that died: a sanitizer's report or a backtrace, and what else is known.
  std::optional<std::vector<std::string>> trace = std::nullopt;
  Evidence evidence = {};
  std::vector<TimingRecord> timings = {};
};
BOOST_DESCRIBE_STRUCT(SubjectRecord, (),
                      (subject, outcome, problem, difference, alike, sides, repro, shrunk, repeat,
                       trace, evidence, timings))

/// The variant of a bench's limit, which stands among the subjects of a case: "views.paged@memcpy".
inline constexpr std::string_view kLimitVariant = "memcpy";

/// Whom a subject is compared with: "views.paged@reference" for "views.paged@optimized".
[[nodiscard]] std::string reference_name(const std::string& subject);

/// One case, as written and as read again.
struct CaseRecord {
  std::uint64_t index = 0;
  std::string name;
  std::string kind;
  std::string law;
  std::uint64_t operations = 0;
  std::vector<std::string> labels = {};
  std::vector<Figure> figures = {};
  std::vector<SubjectRecord> subjects = {};
};
BOOST_DESCRIBE_STRUCT(CaseRecord, (),
                      (index, name, kind, law, operations, labels, figures, subjects))

}  // namespace kvo::tools

namespace kvo {
extern template const Type& type_of<tools::CaseRecord>();  // in run_file.cpp
}  // namespace kvo

namespace kvo::tools {

[[nodiscard]] TimingRecord timing_record(std::string_view op, const Durations& durations);
[[nodiscard]] CaseRecord record_of(std::uint64_t index, const CaseResult& result);
[[nodiscard]] ShrunkRecord shrunk_record(const Repro& repro);

/// A run file read again.
struct RunRecord {
  RunHeader header;
  std::vector<CaseRecord> cases;  ///< 0, 1, ... in order
  bool torn = false;              ///< the last line is not whole: the run was killed
};

/// Reads a run file, gzipped or not.
/// Errors   as TextSource; a first line that describes no run of this format; lines that are not
///          the cases 0, 1, ... in order; a last line that is torn is none.
[[nodiscard]] traces::TraceResult<RunRecord> read_run(const std::string& path);

/// A run file open for appending.
class RunFile {
 public:
  enum class Existing : std::uint8_t { kRefused, kResumed, kReplaced };
  /// Begins a new file, or with kResumed continues the file at `path`, without a last line that is
  /// not whole. The file is locked as long as this object lives.
  /// Errors   the path cannot be written; another process has the lock; kRefused: a file with
  ///          content is there; kResumed: no regular file, another run's header, or lines that are
  ///          not, byte for byte, the cases 0, 1, ... as this program writes them. An existing file
  ///          is then left as it was.
  [[nodiscard]] static traces::TraceResult<RunFile> open(const std::string& path,
                                                         const RunHeader& header,
                                                         Existing existing);

  /// Cases that a resumed file already holds.
  [[nodiscard]] const std::vector<CaseRecord>& earlier() const { return earlier_; }

  /// Appends one case and flushes it.
  /// Errors   the system's: no space left, ...
  [[nodiscard]] traces::TraceResult<void> append(const CaseRecord& record);
  /// To be called after the last case.
  /// Errors   the file was removed, or another one has its name.
  [[nodiscard]] traces::TraceResult<void> finish() const;

 private:
  struct Close {
    void operator()(std::FILE* file) const;
  };
  traces::TraceResult<void> write_line(const std::string& line);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<CaseRecord> earlier_;
};

}  // namespace kvo::tools
