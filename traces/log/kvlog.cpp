#include "traces/log/kvlog.hpp"

#include <algorithm>
#include <utility>

#include "reference/contract/describe/json.hpp"
#include "reference/contract/describe/parse_json.hpp"
#include "traces/formats/formats.hpp"
#include "traces/log/cases.hpp"

namespace kvo::traces {
namespace {

namespace json = boost::json;

TraceError fault_error(const Place& place, std::string_view inside, const JsonFault& fault) {
  const std::string field =
      std::string(inside) + (fault.field.empty() || inside.empty() ? "" : ".") + fault.field;
  return error_at(place, field, fault.value, fault.problem);
}

// A member of the header that may be absent.
template <class T>
bool read_member(const json::object& from, std::string_view name, T& out, JsonFault& fault) {
  const json::value* found = from.if_contains(name);
  if (found == nullptr) return true;
  return read_json(*found, out, fault) || detail::fault_inside(fault, name);
}

// A seed, or a list of choices.
bool read_schedule(const json::object& from, std::optional<Schedule>& out, JsonFault& fault) {
  const json::value* found = from.if_contains("schedule");
  if (found == nullptr) return true;
  if (found->is_array()) {
    std::vector<std::uint32_t> choices;
    if (!read_json(*found, choices, fault)) return detail::fault_inside(fault, "schedule");
    out.emplace(std::move(choices));
    return true;
  }
  std::uint64_t seed = 0;
  if (!read_json(*found, seed, fault)) return detail::fault_inside(fault, "schedule");
  out.emplace(seed);
  return true;
}

// Flags that a log leaves out because its results show them.
void tell_flags(const OpKind& kind, const json::object& line, json::value& args) {
  const json::value* ret = line.if_contains("ret");
  if (ret == nullptr || !ret->is_object() || !args.is_object()) return;
  for (const Field& field : kind.arguments->fields)
    if (!field.told_by.empty() && !args.get_object().contains(field.name))
      args.get_object()[field.name] = ret->get_object().contains(field.told_by);
}

// {"result": 12, "member": "block", "at": 0}: what an operation of the case returned.
bool read_reference(const json::value& in, ResultReference& out, JsonFault& fault) {
  const json::object& from = in.get_object();
  std::optional<std::uint64_t> at;
  for (const auto& member : from)
    if (const auto key = member.key(); key != "result" && key != "member" && key != "at") {
      detail::fault_at(fault, member.value(), "is no member of a reference: result, member, at");
      return detail::fault_inside(fault, key);
    }
  if (!read_member(from, "result", out.operation, fault) ||
      !read_member(from, "member", out.member, fault) || !read_member(from, "at", at, fault))
    return false;
  if (at) out.of = *at;
  return true;
}

bool is_reference(const json::value& value) {
  return value.is_object() && value.get_object().contains("result");
}

// Takes the references out of arguments that may be handles, and leaves a number in their place,
// or an empty list.
bool take_references(const OpKind& kind, json::value& args, std::vector<ResultReference>& found,
                     JsonFault& fault) {
  if (!args.is_object()) return true;
  for (const Field& field : kind.arguments->fields) {
    json::value* value = args.get_object().if_contains(field.name);
    if (value == nullptr || field.domain == nullptr || field.domain->handle_of.empty()) continue;
    const bool is_list = field.type->value_type().type_class == TypeClass::kList;
    const auto take = [&](json::value& one, std::optional<std::size_t> at) {
      ResultReference& reference = found.emplace_back();
      reference.argument = field.name;
      reference.at = at;
      if (!read_reference(one, reference, fault)) return detail::fault_inside(fault, field.name);
      one = is_list && !at ? json::value(json::array()) : json::value(0);
      return true;
    };
    if (is_reference(*value) && !take(*value, std::nullopt)) return false;
    if (!value->is_array()) continue;
    json::array& elements = value->get_array();
    for (std::size_t i = 0; i < elements.size(); ++i)
      if (is_reference(elements[i]) && !take(elements[i], i)) return false;
  }
  return true;
}

// What another file of this project is, by its first line; empty: it may be a log.
std::string other_file(std::string_view line) {
  const auto has = [&](std::string_view word) { return line.find(word) != std::string_view::npos; };
  if (has("\"kvlog\"")) return {};
  if (has("\"format_version\"") && has("\"kvoracle\""))
    return "this is a run file: an operation log is expected here, gate compares run files";
  if (std::ranges::any_of(formats(), [&](const Format& format) { return format.detect(line); }))
    return "this is a request trace: an operation log is expected here, run replays request traces";
  return {};
}

}  // namespace

json::object write_observation(const Observation& seen) {
  json::object out = seen.returns ? write_record(seen.returns) : json::object();
  if (!seen.error) return out;
  if (seen.error->code == Code::kPrecondition) {
    out["panic"] = seen.error->detail;
    return out;
  }
  out["error"] = seen.error->code_text();
  if (!seen.error->detail.empty()) out["detail"] = seen.error->detail;
  return out;
}

std::optional<Observation> read_observation(const OpKind& kind, const json::value& in,
                                            JsonFault& fault) {
  if (!in.is_object()) {
    detail::fault_at(fault, in, "is not an object");
    return std::nullopt;
  }
  const json::object& object = in.get_object();
  Observation seen;
  if (object.contains("panic")) {
    seen.error = fail(Code::kPrecondition);
    return seen;
  }
  const json::value* code = object.if_contains("error");
  if (code == nullptr) {
    seen.returns = read_record(in, *kind.returns, fault);
  } else {
    if (!code->is_string()) {
      detail::fault_at(fault, *code, "is no error code");
      detail::fault_inside(fault, "error");
      return std::nullopt;
    }
    seen.error = error_of_code(code->get_string());
    json::object values = object;
    for (const char* word : {"error", "detail", "stage"}) values.erase(word);
    if (values.empty()) return seen;
    seen.returns = read_record(values, *kind.returns, fault);
  }
  if (!seen.returns) return std::nullopt;
  return seen;
}

LogReader::LogReader(TextSource source, FindKind find)
    : name_(source.name()), source_(std::move(source)), find_(std::move(find)) {}

TraceResult<LogReader> LogReader::open(const std::string& path, FindKind find) {
  auto source = TextSource::open(path);
  if (!source) return std::move(source).error();
  return LogReader(std::move(*source), std::move(find));
}

LogReader LogReader::in_memory(std::string name, std::string_view text, FindKind find) {
  return {TextSource::in_memory(std::move(name), text), std::move(find)};
}

TraceResult<void> LogReader::fetch() {
  if (line_) return {};
  const auto text = source_.next_line();
  if (!text) return text.error();
  if (!*text) return {};
  if (kind_ == nullptr)
    if (const std::string other = other_file(**text); !other.empty())
      return error_at(source_.place(), "", "", other);
  boost::system::error_code failure;
  std::optional<std::string> twice;
  json::value value = parse_json(**text, failure, &twice);
  if (twice)
    return error_at(source_.place(), "", "", "member '" + excerpt(*twice) + "' is there twice");
  if (failure) return error_at(source_.place(), "", **text, "is not JSON: " + failure.message());
  if (!value.is_object()) return error_at(source_.place(), "", **text, "is not a JSON object");
  line_ = std::move(value.get_object());
  return {};
}

// The whole file is read before anything of it is given.
TraceResult<void> LogReader::fetch_stated() {
  if (stated_) return {};
  const auto text = text_of(std::move(source_));
  if (!text) return text.error();
  auto cases = read_cases(name_, *text, find_);
  if (!cases) return std::move(cases).error();
  stated_ = std::move(*cases);
  if (only_)
    std::erase_if(*stated_, [&](const Case& each) { return each.header.profile != only_; });
  return {};
}

TraceResult<std::optional<CaseHeader>> LogReader::next_case() {
  if (holds_rule_cases(name_)) {
    if (const auto read = fetch_stated(); !read) return read.error();
    if (next_case_ == stated_->size()) return std::optional<CaseHeader>();
    next_step_ = 0;
    return std::optional<CaseHeader>((*stated_)[next_case_++].header);
  }
  while (true) {
    if (const auto read = fetch(); !read) return read.error();
    if (!line_) return std::optional<CaseHeader>();
    if (line_->contains("kvlog")) {
      auto header = read_header();
      line_.reset();
      if (!header) return std::move(header).error();
      return std::optional<CaseHeader>(std::move(*header));
    }
    if (kind_ == nullptr)
      return error_at(source_.place(), "kvlog", json::serialize(*line_),
                      "an operation stands before the first header");
    // The rest of a case that nobody wants to see is still checked.
    if (const auto step = read_step(); !step) return step.error();
    line_.reset();
  }
}

TraceResult<std::optional<Step>> LogReader::next_step() {
  if (stated_) {
    if (next_case_ == 0 || next_step_ == (*stated_)[next_case_ - 1].steps.size())
      return std::optional<Step>();
    return std::optional<Step>((*stated_)[next_case_ - 1].steps[next_step_++]);
  }
  if (const auto read = fetch(); !read) return read.error();
  if (!line_ || line_->contains("kvlog")) return std::optional<Step>();
  auto step = read_step();
  line_.reset();
  if (!step) return std::move(step).error();
  return std::optional<Step>(std::move(*step));
}

TraceResult<CaseHeader> LogReader::read_header() {
  CaseHeader header;
  header.line = source_.line_number();
  std::int64_t version = 0;
  std::string contract;
  std::string cache;
  JsonFault fault;
  if (!read_member(*line_, "kvlog", version, fault) ||
      !read_member(*line_, "contract", contract, fault) ||
      !read_member(*line_, "cache", cache, fault) ||
      !read_member(*line_, "system", header.system, fault) ||
      !read_member(*line_, "version", header.version, fault) ||
      !read_member(*line_, "case", header.name, fault) ||
      !read_member(*line_, "note", header.note, fault) ||
      !read_member(*line_, "tags", header.tags, fault) ||
      !read_member(*line_, "rules", header.rules, fault) ||
      !read_member(*line_, "law", header.law, fault) ||
      !read_member(*line_, "references", header.references, fault) ||
      !read_schedule(*line_, header.schedule, fault))
    return fault_error(source_.place(), "", fault);
  if (const json::value* profile = line_->if_contains("profile");
      profile != nullptr && !read_json(*profile, header.profile.emplace(), fault))
    return fault_error(source_.place(), "profile", fault);
  if (version != 1)
    return error_at(source_.place(), "kvlog", std::to_string(version), "is no known version: 1");
  header.kind = find_(contract, cache);
  if (header.kind == nullptr)
    return error_at(source_.place(), "contract", contract + "." + cache,
                    "is no known contract and cache");
  kind_ = header.kind;
  if (const json::value* config = line_->if_contains("config")) {
    if (!config->is_object())
      return error_at(source_.place(), "config", json::serialize(*config), "is not an object");
    header.config = read_record(*config, *header.kind->config, fault);
    if (!header.config) return fault_error(source_.place(), "config", fault);
  }
  answered_.clear();
  answer_ = header.references && find_.open() ? find_.open()(header) : nullptr;
  return header;
}

TraceResult<Record> LogReader::read_arguments(const OpKind& kind, json::value args) {
  JsonFault fault;
  std::vector<ResultReference> references;
  if (answer_ && !take_references(kind, args, references, fault))
    return fault_error(source_.place(), "args", fault);
  Record arguments = read_record(args, *kind.arguments, fault);
  if (!arguments && !answer_ && take_references(kind, args, references, fault) &&
      !references.empty())
    fault.problem = "refers to a result: the header of the case must have \"references\": true";
  if (!arguments) return fault_error(source_.place(), "args", fault);
  return resolved(kind, std::move(arguments), references);
}

TraceResult<Record> LogReader::resolved(const OpKind& kind, Record arguments,
                                        const std::vector<ResultReference>& references) const {
  for (const ResultReference& reference : references) {
    const auto refused = [&](const std::string& problem) {
      return error_at(source_.place(), "args." + reference.argument,
                      std::to_string(reference.operation), problem);
    };
    if (reference.operation >= answered_.size())
      return refused("refers to an operation that has not run: this is operation " +
                     std::to_string(answered_.size()));
    const Answered& source = answered_[reference.operation];
    const std::string returned = "operation " + std::to_string(reference.operation) + ", " +
                                 std::string(source.op) + ", returned ";
    if (source.error) return refused(returned + "an error: " + source.error->text());
    const Domain& domain =
        *std::ranges::find(kind.arguments->fields, reference.argument, &Field::name)->domain;
    for (const Handle& handle : source.handles)
      if (handle.member == reference.member && handle.of != domain.handle_of)
        return refused(returned + "a " + std::string(handle.of) + " there, not a " +
                       std::string(domain.handle_of));
    auto changed = with_result(arguments, reference, source.handles);
    if (!changed)
      return refused(returned + "no single " + std::string(domain.handle_of) + " as '" +
                     reference.member + "'");
    arguments = std::move(*changed);
  }
  return arguments;
}

TraceResult<Step> LogReader::read_step() {
  std::string name;
  JsonFault fault;
  if (!read_member(*line_, "op", name, fault)) return fault_error(source_.place(), "", fault);
  for (const auto& member : *line_)
    if (const auto key = member.key(); key != "op" && key != "args" && key != "ret")
      return error_at(source_.place(), key, json::serialize(member.value()),
                      "is no member of an operation: op, args, ret");
  const OpKind* kind = kind_->operation(name);
  if (kind == nullptr)
    return error_at(source_.place(), "op", name, "is no operation of " + kind_->name());
  json::value* args = line_->if_contains("args");
  if (args != nullptr) tell_flags(*kind, *line_, *args);
  auto arguments = read_arguments(*kind, args != nullptr ? *args : json::object());
  if (!arguments) return std::move(arguments).error();
  Step step{Op(*kind, std::move(*arguments))};
  if (answer_) {
    const Observation seen = answer_(step.op);
    answered_.push_back({kind->name, seen.error, handles_of(seen.returns)});
  }
  if (const json::value* ret = line_->if_contains("ret")) {
    step.recorded = read_observation(*kind, *ret, fault);
    if (!step.recorded) return fault_error(source_.place(), "ret", fault);
  }
  return step;
}

TraceResult<std::optional<Case>> LogReader::next_whole_case(std::string_view name) {
  while (true) {
    auto header = next_case();
    if (!header) return std::move(header).error();
    if (!*header) return std::optional<Case>();
    if (!name.empty() && (*header)->name != name) continue;
    std::optional<Case> read{Case{std::move(**header)}};
    while (true) {
      auto step = next_step();
      if (!step) return std::move(step).error();
      if (!*step) return read;
      read->steps.push_back(std::move(**step));
    }
  }
}

TraceResult<Case> read_case(TraceResult<LogReader> log, std::string_view name) {
  if (!log) return log.error();
  auto read = log->next_whole_case(name);
  if (!read) return std::move(read).error();
  if (*read) return std::move(**read);
  return error_at({log->name(), 0}, "case", name,
                  name.empty() ? "the log has no case" : "no such case");
}

std::string header_line(const CaseHeader& header) {
  json::object line;
  line["kvlog"] = 1;
  line["contract"] = header.kind->contract;
  line["system"] = header.system;
  line["version"] = header.version;
  line["cache"] = header.kind->cache;
  line["config"] = header.config ? write_record(header.config) : json::object();
  line["case"] = header.name;
  line["note"] = header.note;
  if (!header.tags.empty()) line["tags"] = write_json(header.tags);
  if (!header.rules.empty()) line["rules"] = write_json(header.rules);
  if (header.profile) line["profile"] = write_json(*header.profile);
  if (!header.law.empty()) line["law"] = header.law;
  if (header.schedule && header.schedule->seed())
    line["schedule"] = *header.schedule->seed();
  else if (header.schedule)
    line["schedule"] = write_json(header.schedule->given());
  return json::serialize(line);
}

std::string step_line(const Op& op, const std::optional<Observation>& recorded) {
  json::object line;
  line["op"] = op.kind().name;
  line["args"] = write_record(op.arguments());
  if (recorded) line["ret"] = write_observation(*recorded);
  return json::serialize(line);
}

std::vector<std::string> lines_of(const Case& written) {
  if (written.header.stated)  // whose answers may be partial
    return {"kind " + written.header.kind->name() + "\n" + case_text(written)};
  std::vector<std::string> lines{header_line(written.header)};
  for (const Step& step : written.steps) lines.push_back(step_line(step.op, step.recorded));
  return lines;
}

}  // namespace kvo::traces
