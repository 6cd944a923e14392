#include "tools/reports/run_file.hpp"

#include <array>
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
#include "tools/commands/usage.hpp"
#include "tools/reports/result_file.hpp"
#include "traces/io/text_source.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using traces::error_at;
using traces::TraceError;
using traces::TraceResult;

constexpr std::int64_t kFirstVersion = 1;
constexpr std::string_view kNoJson = "is not JSON";

TraceError system_error(const std::string& path) {
  return error_at({path, 0}, "", "", std::strerror(errno));
}

// A histogram that Durations could not have given; nothing if there is none.
std::optional<std::uint64_t> wrong_bucket(const CaseResult& record) {
  for (const SubjectResult& subject : record.subjects)
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
  if (header.format_version != kFormatVersion && header.format_version != kFirstVersion)
    return error_at(source.place(), "format_version", std::to_string(header.format_version),
                    fmt::format("only {} and {} are read", kFirstVersion, kFormatVersion));
  return header;
}

// A verdict of version 1, which had its operation in the words of `problem`: "op 12 get: reason".
json::object upgraded_verdict(json::object& old, const json::value& outcome) {
  json::object verdict{{"outcome", outcome}};
  if (const json::value* difference = old.if_contains("difference"))
    verdict["difference"] = *difference;
  const json::value* problem = old.if_contains("problem");
  std::string text = problem != nullptr && problem->is_string() ? problem->as_string().c_str() : "";
  const std::size_t colon = text.find(": ");
  const std::size_t blank = text.find(' ', 3);
  if (text.starts_with("op ") && blank < colon && colon != std::string::npos) {
    verdict["op_index"] = std::strtoull(text.c_str() + 3, nullptr, 10);
    verdict["op"] = text.substr(blank + 1, colon - blank - 1);
    text = text.substr(colon + 2);
  }
  if (!verdict.contains("difference")) verdict["reason"] = text;
  for (const char* name : {"outcome", "problem", "difference", "alike"}) old.erase(name);
  return verdict;
}

// Names of version 1, in an order in which none is taken twice.
void upgrade_evidence(json::object& result) {
  json::value* evidence = result.if_contains("evidence");
  if (evidence == nullptr || !evidence->is_object()) return;
  json::object& members = evidence->get_object();
  static constexpr std::array<std::pair<const char*, const char*>, 4> kRenamed{
      {{"judged", "rows_judged"},
       {"skipped", "rows_skipped"},
       {"put_off", "deferred"},
       {"given_up", "skipped"}}};
  for (const auto& [before, now] : kRenamed)
    if (const json::value* value = members.if_contains(before)) {
      json::value kept = *value;
      members.erase(before);
      members[now] = std::move(kept);
    }
}

// A case of version 1 as this version writes it. What is no such case stays as it is: reading it
// says what is wrong.
void upgrade(json::value& line) {
  json::object* one = line.if_object();
  if (one == nullptr || !one->contains("subjects") || !one->at("subjects").is_array()) return;
  (*one)["attributions"] = json::array();
  const json::value law = one->contains("law") ? one->at("law") : json::value("");
  for (json::value& subject : one->at("subjects").get_array()) {
    json::object* result = subject.if_object();
    if (result != nullptr) upgrade_evidence(*result);
    if (result == nullptr || !result->contains("outcome")) continue;
    const json::value outcome = result->at("outcome");
    (*result)["verdict"] = upgraded_verdict(*result, outcome);
    json::value* shrunk = result->if_contains("shrunk");
    if (shrunk == nullptr || !shrunk->is_object()) continue;
    json::object& old = shrunk->get_object();
    const bool repeats = !old.contains("repeats") || old.at("repeats") == json::value(true);
    old["verdict"] = upgraded_verdict(old, repeats ? outcome : json::value("agrees"));
    old["law"] = law;
    const json::value guilty = old.contains("guilty") ? old.at("guilty") : json::value();
    if (json::value* script = old.if_contains("script"); script != nullptr && script->is_array()) {
      std::uint64_t index = 0;
      for (json::value& text : script->get_array()) {
        text = json::object{{"op_index", index}, {"text", text}};
        if (json::value(index++) == guilty) text.get_object()["mark"] = ">";
      }
    }
    old.erase("repeats");
    old.erase("guilty");
  }
}

// Case `index`, of a line without its end.
TraceResult<CaseResult> read_case(std::string_view line, traces::Place place, std::uint64_t index,
                                  std::int64_t version = kFormatVersion) {
  boost::system::error_code no_json;
  json::value value = parse_json(line, no_json);
  if (no_json) return error_at(place, "", line, kNoJson);
  if (version == kFirstVersion) upgrade(value);
  CaseResult record;
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
                                std::vector<CaseResult>& cases) {
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

}  // namespace

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
    auto record = read_case(**line, source->place(), run.cases.size(), run.header.format_version);
    if (!record && record.error().message == kNoJson) {
      const auto more = source->peek_line();
      run.torn = !more || !*more;
      if (run.torn) return run;
    }
    if (!record) return std::move(record).error();
    run.cases.push_back(std::move(*record));
  }
}

std::string reference_name(const std::string& subject) {
  return subject.substr(0, subject.find('@')) + "@reference";
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

TraceResult<void> RunFile::append(const CaseResult& record) {
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
