#include "tools/run_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reference/contract/describe/parse_json.hpp"
#include "tools/result_file.hpp"
#include "tools/usage.hpp"
#include "traces/io/text_source.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using traces::error_at;
using traces::TraceError;
using traces::TraceResult;

constexpr std::string_view kNoJson = "is not JSON";

TraceError system_error(const std::string& path) {
  return error_at({path, 0}, "", "", std::strerror(errno));
}

// A histogram that Durations could not have given; nothing if there is none.
std::optional<std::uint64_t> wrong_bucket(const CaseRecord& record) {
  for (const SubjectRecord& subject : record.subjects)
    for (const TimingRecord& timing : subject.timings)
      for (const auto& [bucket, count] : timing.histogram)
        if (bucket >= Durations::kBuckets || count > std::numeric_limits<std::uint32_t>::max())
          return bucket;
  return std::nullopt;
}

TraceError wrong_field(traces::Place place, const JsonFault& fault) {
  return error_at(place, fault.field, fault.value, fault.problem);
}

TraceResult<RunHeader> read_header(const traces::TextSource& source, std::string_view line) {
  boost::system::error_code no_json;
  const json::value read = parse_json(line, no_json);
  if (no_json || !read.is_object() || !read.get_object().contains("options"))
    return error_at(source.place(), "", std::string(line), "is not the first line of a run file");
  RunHeader header;
  JsonFault fault;
  if (!read_json(read, header, fault)) return wrong_field(source.place(), fault);
  if (header.format_version != kFormatVersion)
    return error_at(source.place(), "format_version", std::to_string(header.format_version),
                    "only " + std::to_string(kFormatVersion) + " is read");
  return header;
}

// Case `index`, of a line without its end.
TraceResult<CaseRecord> read_case(std::string_view line, traces::Place place, std::uint64_t index) {
  boost::system::error_code no_json;
  const json::value value = parse_json(line, no_json);
  if (no_json) return error_at(place, "", line, kNoJson);
  CaseRecord record;
  JsonFault fault;
  if (!read_json(value, record, fault)) return wrong_field(place, fault);
  if (record.index != index)
    return error_at(place, "index", std::to_string(record.index),
                    "is not the next case, " + std::to_string(index));
  if (const auto bucket = wrong_bucket(record))
    return error_at(place, "histogram", std::to_string(*bucket), "no duration is counted so");
  return record;
}

template <class Record>
std::string line_of(const Record& record) {
  return json::serialize(write_json(record));
}

// The next line as it is, with its LF unless the file ends before; empty at the end of the file.
std::string next_line(std::FILE* file) {
  std::string line;
  int c = 0;
  while (c != '\n' && line.size() <= traces::kMaxLineBytes && (c = getc_unlocked(file)) != EOF)
    line += static_cast<char>(c);
  return line;
}

// Reads the cases of an interrupted run. Returns the size of its whole lines; 0: not even the
// header is whole. A line that is not, byte for byte, what this program writes is an error: nothing
// can be appended to another program's file.
TraceResult<off_t> read_earlier(std::FILE* file, const std::string& path, const std::string& header,
                                std::vector<CaseRecord>& cases) {
  std::string line = next_line(file);
  if (line != header + "\n") {
    if (header.starts_with(line)) return off_t{0};
    return error_at({path, 1}, "", line, "is not the header of this run, unpacked");
  }
  auto whole = static_cast<off_t>(line.size());
  while (!(line = next_line(file)).empty()) {
    const traces::Place place{path, cases.size() + 2};
    if (line.back() != '\n') {
      const std::string begin = fmt::format(R"({{"index":{},)", cases.size());
      if ((line.starts_with(begin) || begin.starts_with(line)) &&
          line.size() <= traces::kMaxLineBytes)
        return whole;
      return error_at(place, "", line, "is not the beginning of a case");
    }
    auto record = read_case(std::string_view(line).substr(0, line.size() - 1), place, cases.size());
    if (!record) return std::move(record).error();
    if (line_of(*record) + "\n" != line)
      return error_at(place, "", line,
                      "is not a line as this version writes it (line end, blanks, members)");
    whole += static_cast<off_t>(line.size());
    cases.push_back(std::move(*record));
  }
  if (std::ferror(file) != 0) return system_error(path);
  return whole;
}

// "(RS-4, RS-5)" at the end of an operation's sentence.
std::string rules_of(std::string_view doc) {
  constexpr char kRuleDash = '-';
  const std::size_t begin = doc.rfind('(');
  const std::size_t end = doc.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin ||
      doc.substr(begin, end - begin).find(kRuleDash) == std::string_view::npos)
    return {};
  return std::string(doc.substr(begin + 1, end - begin - 1));
}

std::optional<Difference> difference_of(const Verdict& verdict) {
  if (verdict.outcome != Outcome::kMismatch) return std::nullopt;
  return verdict.difference;
}

}  // namespace

std::optional<std::string> schedule_text(const traces::CaseHeader& header) {
  if (!header.schedule) return std::nullopt;
  if (!header.schedule->seed() && header.schedule->given().empty()) return std::nullopt;
  if (header.schedule->seed()) return fmt::format("seed {}", *header.schedule->seed());
  return fmt::format("choices {}", fmt::join(header.schedule->given(), " "));
}

TraceResult<RunRecord> read_run(const std::string& path) {
  auto source = traces::TextSource::open(path);
  if (!source) return source.error();
  const auto first = source->next_line();
  if (!first) return first.error();
  auto header = read_header(*source, first->value_or(""));
  if (!header) return std::move(header).error();
  RunRecord run{.header = std::move(*header), .cases = {}};
  while (true) {
    const auto line = source->next_line();
    if (!line) return line.error();
    if (!*line) return run;
    auto record = read_case(**line, source->place(), run.cases.size());
    if (!record && record.error().message == kNoJson) {
      const auto more = source->peek_line();
      run.torn = !more || !*more;
      if (run.torn) return run;
    }
    if (!record) return std::move(record).error();
    run.cases.push_back(std::move(*record));
  }
}

ShrunkRecord shrunk_record(const Repro& repro) {
  constexpr std::size_t kMostLines = 24;
  const std::vector<traces::Step>& steps = repro.script.steps;
  ShrunkRecord record{.operations = steps.size(),
                      .problem = repro.verdict.text(),
                      .difference = difference_of(repro.verdict),
                      .repeats = repro.verdict.failed(),
                      .origins = repro.origins,
                      .inside = repro.inside,
                      .schedule = schedule_text(repro.script.header),
                      .rules = {},
                      .guilty = repro.verdict.op_index,
                      .script = {}};
  if (record.guilty < steps.size()) record.rules = rules_of(steps[record.guilty].op.kind().doc);
  if (steps.size() <= kMostLines)
    for (const traces::Step& step : steps) record.script.push_back(op_text(step.op));
  return record;
}

std::string reference_name(const std::string& subject) {
  return subject.substr(0, subject.find('@')) + "@reference";
}

TimingRecord timing_record(std::string_view op, const Durations& durations) {
  TimingRecord timing{.op = std::string(op),
                      .total_nanoseconds = durations.total_nanoseconds(),
                      .payload_bytes = durations.payload_bytes()};
  for (const auto& [bucket, count] : durations.histogram())
    timing.histogram.push_back({bucket, count});
  return timing;
}

CaseRecord record_of(std::uint64_t index, const CaseResult& result) {
  CaseRecord record{.index = index,
                    .name = result.name,
                    .kind = result.kind,
                    .law = std::string(result.law),
                    .operations = result.operations,
                    .labels = {result.labels.begin(), result.labels.end()},
                    .figures = result.figures,
                    .subjects = {}};
  for (const SubjectResult& subject : result.subjects) {
    SubjectRecord& out = record.subjects.emplace_back();
    out.subject = subject.subject;
    out.outcome = subject.verdict.outcome;
    out.evidence = subject.evidence;
    if (out.outcome != Outcome::kAgrees) out.problem = subject.verdict.text();
    out.difference = difference_of(subject.verdict);
    if (subject.verdict.failed()) out.alike = record.law + " " + subject.verdict.signature();
    out.sides = subject.sides;
    if (subject.repro) out.shrunk = shrunk_record(*subject.repro);
    for (const Timings::Row& row : subject.timings.rows())
      out.timings.push_back(timing_record(row.op->name, row.durations));
  }
  return record;
}

void RunFile::Close::operator()(std::FILE* file) const {
  (void)flock(fileno(file), LOCK_UN);  // a process that a subject left behind may have it open, too
  (void)std::fclose(file);
}

TraceResult<RunFile> RunFile::open(const std::string& path, const RunHeader& header,
                                   Existing existing) {
  RunFile run;
  run.path_ = path;
  std::error_code none;
  const bool regular =
      !std::filesystem::exists(path, none) || std::filesystem::is_regular_file(path, none);
  if (existing == Existing::kResumed && !regular)
    return error_at({path, 0}, "", "", "is no file that could be resumed");
  constexpr mode_t kMode = 0666;
  const int flags = O_APPEND | O_CLOEXEC | (regular ? O_RDWR | O_CREAT : O_WRONLY);
  const int descriptor = ::open(path.c_str(), flags, kMode);  // NOLINT: of POSIX
  if (descriptor < 0) return system_error(path);
  run.file_.reset(fdopen(descriptor, regular ? "a+b" : "ab"));
  if (!run.file_) return system_error(path);
  off_t whole = 0;
  if (regular) {
    if (const auto locked = lock_or_refuse(descriptor, path); !locked) return locked.error();
    if (existing == Existing::kRefused && std::filesystem::file_size(path, none) > 0)
      return error_at({path, 0}, "", "",
                      "is there already: --resume goes on with it, --overwrite begins anew");
    if (existing == Existing::kResumed) {
      std::rewind(run.file_.get());
      const auto read = read_earlier(run.file_.get(), path, line_of(header), run.earlier_);
      if (!read) return read.error();
      whole = *read;
    }
    if (ftruncate(descriptor, whole) != 0 || std::fseek(run.file_.get(), 0, SEEK_END) != 0)
      return system_error(path);
  }
  if (whole == 0)
    if (const auto written = run.write_line(line_of(header)); !written) return written.error();
  return run;
}

TraceResult<void> RunFile::append(const CaseRecord& record) {
  return write_line(line_of(record));
}

TraceResult<void> RunFile::finish() const {
  struct stat opened {};
  struct stat there {};
  if (fstat(fileno(file_.get()), &opened) == 0 && stat(path_.c_str(), &there) == 0 &&
      opened.st_dev == there.st_dev && opened.st_ino == there.st_ino)
    return {};
  return error_at({path_, 0}, "", "", "was removed or replaced while the cases were written to it");
}

TraceResult<void> RunFile::write_line(const std::string& line) {
  // One write a line: a killed run leaves whole lines but for the last.
  const std::string whole = line + "\n";
  if (std::fwrite(whole.data(), 1, whole.size(), file_.get()) != whole.size() ||
      std::fflush(file_.get()) != 0)
    return system_error(path_);
  return {};
}

}  // namespace kvo::tools

namespace kvo {
template const Type& type_of<tools::CaseRecord>();
}  // namespace kvo
