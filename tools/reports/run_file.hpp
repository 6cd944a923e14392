// tools/reports/run_file.hpp: what a run writes: JSON Lines, one line a case, appended as cases
// finish.
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

#include "properties/runner/case_result.hpp"
#include "reference/contract/describe/json.hpp"
#include "reference/contract/values/quirk.hpp"
#include "tools/reports/result_file.hpp"
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

/// The variant of a bench's limit, which stands among the subjects of a case: "views.paged@memcpy".
inline constexpr std::string_view kLimitVariant = "memcpy";

/// Whom a subject is compared with: "views.paged@reference" for "views.paged@optimized".
[[nodiscard]] std::string reference_name(const std::string& subject);

/// A run file read again.
struct RunRecord {
  RunHeader header;
  std::vector<CaseResult> cases;  ///< 0, 1, ... in order
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
  [[nodiscard]] const std::vector<CaseResult>& earlier() const { return earlier_; }

  /// Appends one case and flushes it.
  /// Errors   the system's: no space left, ...
  [[nodiscard]] traces::TraceResult<void> append(const CaseResult& record);
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
  std::vector<CaseResult> earlier_;
};

}  // namespace kvo::tools
