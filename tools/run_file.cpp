#include "tools/run_file.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reference/contract/describe/parse_json.hpp"
#include "tools/result_file.hpp"
#include "traces/io/text_source.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using traces::error_at;
using traces::TraceError;
using traces::TraceResult;

std::string header_line(const RunHeader& header) {
  json::object line;
  line["format_version"] = kFormatVersion;
  line["kvoracle"] = header.kvoracle;
  line["command"] = header.command;
  line["seed"] = header.seed;
  line["profile"] = write_json(header.profile);
  line["subjects"] = write_json(header.subjects);
  line["options"] = header.options;
  return json::serialize(line);
}

TraceError system_error(const std::string& path) {
  return error_at({path, 0}, "", "", std::strerror(errno));
}

// What a resumed file holds: its cases, and the bytes up to the end of the last whole line.
struct Earlier {
  std::vector<CaseRecord> cases;
  std::uintmax_t whole_bytes = 0;
};

// gzip
bool is_packed(const std::string& path) {
  std::array<char, 2> magic{};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  return file && std::fread(magic.data(), 1, magic.size(), file.get()) == magic.size() &&
         magic == std::array{'\x1f', '\x8b'};
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

TraceError wrong_field(const traces::TextSource& source, const JsonFault& fault) {
  return error_at(source.place(), fault.field, fault.value, fault.problem);
}

// The first line, but for the options.
struct HeaderRecord {
  std::int64_t format_version = 0;
  std::string kvoracle;
  std::string command;
  std::uint64_t seed = 0;
  Profile profile = Profile::kOriginal;
  std::vector<std::string> subjects;
};
BOOST_DESCRIBE_STRUCT(HeaderRecord, (),
                      (format_version, kvoracle, command, seed, profile, subjects))

TraceResult<RunHeader> read_header(const traces::TextSource& source, std::string_view line) {
  boost::system::error_code no_json;
  json::value read = parse_json(line, no_json);
  json::object* members = no_json ? nullptr : read.if_object();
  const json::value* options = members != nullptr ? members->if_contains("options") : nullptr;
  if (options == nullptr || !options->is_object())
    return error_at(source.place(), "", std::string(line), "is not the first line of a run file");
  RunHeader header;
  header.options = options->get_object();
  members->erase("options");
  HeaderRecord record;
  JsonFault fault;
  if (!read_json(read, record, fault)) return wrong_field(source, fault);
  if (record.format_version != kFormatVersion)
    return error_at(source.place(), "format_version", std::to_string(record.format_version),
                    "only " + std::to_string(kFormatVersion) + " is read");
  header.kvoracle = std::move(record.kvoracle);
  header.command = std::move(record.command);
  header.seed = record.seed;
  header.profile = record.profile;
  header.subjects = std::move(record.subjects);
  return header;
}

// The next case; nothing behind the last one, and where the last line is torn.
TraceResult<std::optional<CaseRecord>> next_case(traces::TextSource& source, std::uint64_t index,
                                                 bool& torn) {
  const auto line = source.next_line();
  if (!line) return line.error();
  if (!*line) return std::nullopt;
  boost::system::error_code no_json;
  const json::value value = parse_json(**line, no_json);
  if (no_json) {
    const std::string text(**line);
    torn = !source.peek_line() || !*source.peek_line();
    if (torn) return std::nullopt;
    return error_at(source.place(), "", text, "is not JSON");
  }
  CaseRecord record;
  JsonFault fault;
  if (!read_json(value, record, fault)) return wrong_field(source, fault);
  if (record.index != index)
    return error_at(source.place(), "index", std::to_string(record.index),
                    "is not the next case, " + std::to_string(index));
  if (const auto bucket = wrong_bucket(record))
    return error_at(source.place(), "histogram", std::to_string(*bucket),
                    "no duration is counted so");
  return record;
}

TraceResult<Earlier> read_earlier(const std::string& path, const RunHeader& header) {
  if (is_packed(path))
    return error_at({path, 0}, "", "", "is packed: nothing can be appended; unpack it (gunzip)");
  auto source = traces::TextSource::open(path);
  if (!source) return source.error();
  const auto first = source->next_line();
  if (!first) return first.error();
  const std::string wanted = header_line(header);
  if (!*first || **first != wanted)
    return error_at({path, 1}, "", first->value_or(""), "is not the header of this run");
  Earlier earlier{.cases = {}, .whole_bytes = wanted.size() + 1};
  bool torn = false;
  while (true) {
    const auto size = source->peek_line();
    const std::size_t bytes = size && *size ? (*size)->size() + 1 : 0;
    auto record = next_case(*source, earlier.cases.size(), torn);
    if (!record) return std::move(record).error();
    if (!*record) return earlier;
    earlier.whole_bytes += bytes;
    earlier.cases.push_back(std::move(**record));
  }
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
    auto record = next_case(*source, run.cases.size(), run.torn);
    if (!record) return std::move(record).error();
    if (!*record) return run;
    run.cases.push_back(std::move(**record));
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

TraceResult<RunFile> RunFile::open(const std::string& path, const RunHeader& header,
                                   Existing existing) {
  RunFile run;
  run.path_ = path;
  std::error_code none;
  const bool regular = std::filesystem::is_regular_file(path, none);
  const bool content = regular && std::filesystem::file_size(path, none) > 0;
  if (content && existing == Existing::kRefused)
    return error_at({path, 0}, "", "",
                    "is there already: --resume goes on with it, --overwrite begins anew");
  if (existing == Existing::kResumed && !regular && std::filesystem::exists(path, none))
    return error_at({path, 0}, "", "", "is no file that could be resumed");
  const bool going_on = content && existing == Existing::kResumed;
  if (going_on) {
    auto earlier = read_earlier(path, header);
    if (!earlier) return std::move(earlier).error();
    if (earlier->whole_bytes > std::filesystem::file_size(path, none)) {
      // The last line reads well but its end is missing: it is written once more.
      const CaseRecord last = std::move(earlier->cases.back());
      earlier->cases.pop_back();
      earlier->whole_bytes -= json::serialize(write_json(last)).size() + 1;
    }
    std::filesystem::resize_file(path, earlier->whole_bytes, none);
    if (none) return error_at({path, 0}, "", "", none.message());
    run.earlier_ = std::move(earlier->cases);
  }
  run.file_.reset(std::fopen(path.c_str(), going_on ? "ab" : "wb"));
  if (!run.file_) return system_error(path);
  if (!going_on)
    if (const auto written = run.write_line(header_line(header)); !written) return written.error();
  return run;
}

TraceResult<void> RunFile::append(const CaseRecord& record) {
  return write_line(json::serialize(write_json(record)));
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
