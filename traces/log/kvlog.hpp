// traces/log/kvlog.hpp: operation logs, read and written one line at a time.
//
// A log is JSON Lines, plain or gzip. A line with "kvlog" begins a case; every other line is one
// operation {"op":..,"args":..,"ret":..}. Logs may be concatenated.
// Source   the log format: docs/kvlog.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "reference/contract/describe/handles.hpp"
#include "reference/contract/describe/json.hpp"
#include "reference/contract/subject/subject.hpp"
#include "traces/io/output_file.hpp"
#include "traces/io/text_source.hpp"

namespace kvo::traces {

/// The first line of a case.
struct CaseHeader {
  const CacheKind* kind = nullptr;
  std::string system = {};   ///< what the case was recorded from
  std::string version = {};  ///< that system's version
  std::string name = {};     ///< "case" in the log
  std::string note = {};
  std::vector<std::string> tags = {};   ///< "quirk" marks cases recorded to go through a defect
  std::vector<std::string> rules = {};  ///< that the case is about: "PX-2"
  std::optional<Profile> profile = std::nullopt;  ///< of a generated script
  std::string law = {};                           ///< that the script breaks; of a generated one
  Record config = {};  ///< of the kind's config type; without a value: all defaults
  std::optional<Schedule> schedule = std::nullopt;  ///< of a device under the caches
  std::uint64_t line = 0;                           ///< of the file
  bool references = false;                          ///< arguments may refer to results
  /// A rule case: what its steps must return is stated for `profile`, not recorded.
  bool stated = false;
};

/// One operation of a script, with what was recorded of it, if anything was.
struct Step {
  Op op;
  std::optional<Observation> recorded = std::nullopt;
  std::uint64_t line = 0;  ///< of a file of rule cases
};

/// A whole case in memory, for shrinking and for tests.
struct Case {
  CaseHeader header;
  std::vector<Step> steps = {};
};

/// Carries out the operations of a case, one by one.
using Answerer = std::function<Observation(const Op& op)>;

/// Finds a cache kind by contract and cache; null when there is none. `open` opens a session for a
/// case whose arguments refer to results; without it such arguments are errors.
class FindKind {
 public:
  using Find = std::function<const CacheKind*(std::string_view contract, std::string_view cache)>;
  using Open = std::function<Answerer(const CaseHeader& header)>;
  template <class Callable>
  FindKind(Callable find, Open open = nullptr)  // NOLINT: reads as a function
      : find_(std::move(find)), open_(std::move(open)) {}
  [[nodiscard]] const CacheKind* operator()(std::string_view contract,
                                            std::string_view cache) const {
    return find_(contract, cache);
  }
  [[nodiscard]] const Open& open() const { return open_; }

 private:
  Find find_;
  Open open_;
};

/// Reads a log in constant memory: next_case(), then next_step() until it gives nothing. A file of
/// rule cases (cases.hpp) is read whole at the first call.
class LogReader {
 public:
  /// Errors   as TextSource::open
  [[nodiscard]] static TraceResult<LogReader> open(const std::string& path, FindKind find);
  [[nodiscard]] static LogReader in_memory(std::string name, std::string_view text, FindKind find);

  /// The next case's header; steps of the case before that were not read are passed over. Nothing
  /// at the end of the log. Errors   the file's; a line that is no JSON object or stops in the
  /// middle; an operation before
  ///          the first header; a missing or ill-typed member; an unknown contract, cache or
  ///          operation; an argument that refers to an operation that has not run, or returned no
  ///          such handle. Each names file, line and field.
  [[nodiscard]] TraceResult<std::optional<CaseHeader>> next_case();
  /// The next operation of the current case, or nothing at its end.
  /// Errors   as next_case
  [[nodiscard]] TraceResult<std::optional<Step>> next_step();
  /// The next case with all operations, or the next one of that name; nothing at the end of the
  /// log. Errors   as next_case
  [[nodiscard]] TraceResult<std::optional<Case>> next_whole_case(std::string_view name = {});

  /// The name of the file.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Leaves out rule cases of the other profile.
  void only_profile(Profile profile) { only_ = profile; }

 private:
  TraceResult<void> fetch_stated();
  LogReader(TextSource source, FindKind find);
  TraceResult<void> fetch();
  TraceResult<CaseHeader> read_header();
  TraceResult<Step> read_step();
  /// The arguments of an operation with what they refer to.
  TraceResult<Record> read_arguments(const OpKind& kind, boost::json::value args);
  [[nodiscard]] TraceResult<Record> resolved(const OpKind& kind, Record arguments,
                                             const std::vector<ResultReference>& references) const;

  std::string name_;
  TextSource source_;
  FindKind find_;
  const CacheKind* kind_ = nullptr;
  std::optional<boost::json::object> line_;  // read and not yet given
  std::optional<Profile> only_;
  std::optional<std::vector<Case>> stated_;  // the cases of a file of rule cases, first to last
  std::size_t next_case_ = 0;                // of them
  std::size_t next_step_ = 0;
  /// Of a case whose arguments may refer to results: the session, and what it has returned.
  struct Answered {
    std::string_view op;
    PossibleError error;
    std::vector<Handle> handles;
  };
  Answerer answer_;
  std::vector<Answered> answered_;
};

/// The case of that name, or the first one when `name` is empty, with all its steps.
/// Errors   as LogReader; no such case
[[nodiscard]] TraceResult<Case> read_case(TraceResult<LogReader> log, std::string_view name);

/// The "ret" object of a log line.
[[nodiscard]] boost::json::object write_observation(const Observation& seen);
/// Reads a "ret" object; a "panic" becomes the error `precondition`.
[[nodiscard]] std::optional<Observation> read_observation(const OpKind& kind,
                                                          const boost::json::value& in,
                                                          JsonFault& fault);

/// The lines of a log, without their ends; without "ret" where nothing was recorded.
[[nodiscard]] std::string header_line(const CaseHeader& header);
[[nodiscard]] std::string step_line(const Op& op, const std::optional<Observation>& recorded);
[[nodiscard]] std::vector<std::string> lines_of(const Case& written);

}  // namespace kvo::traces
