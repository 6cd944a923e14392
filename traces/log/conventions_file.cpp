#include "traces/log/conventions_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvo::traces {
namespace {

// What only the harness says of a subject.
constexpr std::array<std::string_view, 4> kWordsOfTheHarness{"not_supported", "out_of_memory",
                                                             "threw", "died"};

bool is_code(std::string_view word) {
  constexpr std::string_view kOther = "other:";
  return word.starts_with(kOther) || error_of_code(word).code != Code::kOther;
}

constexpr std::int64_t kMostPlus = 1'000;

bool is_count(const Type& type) {
  return type.type_class == TypeClass::kInteger || (type.is_optional() && is_count(*type.element));
}

// The words of a line, which may be in quotes, and the text behind ": ".
struct Line {
  std::vector<std::string_view> words;
  std::vector<bool> quoted = {};  // of each word
  std::string_view because;
};

Line line_of(std::string_view text) {
  Line line;
  while (!text.empty()) {
    const bool quoted = text.front() == '"' && text.find('"', 1) != text.npos;
    if (quoted) text.remove_prefix(1);
    std::size_t end = std::min(text.find(quoted ? '"' : ' '), text.size());
    const bool last = !quoted && end > 0 && text[end - 1] == ':';
    if (end > 0) {
      line.words.push_back(text.substr(0, last ? end - 1 : end));
      line.quoted.push_back(quoted);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
    if (quoted && text.starts_with(": ")) {
      line.because = text.substr(2);
      break;
    }
    if (!last) continue;
    line.because = text;
    break;
  }
  return line;
}

std::string names_of(const CacheKind& kind) {
  std::string names;
  for (const ConventionInfo* info : named_conventions(kind))
    names += (names.empty() ? "" : ", ") + std::string(info->name);
  return names;
}

/// Reads the lines of a file into the conventions of its kinds.
class ConventionsReader {
 public:
  ConventionsReader(TextSource source, const FindKind& find)
      : source_(std::move(source)), find_(find) {}

  TraceResult<std::vector<KindConventions>> read() {
    while (true) {
      const auto text = source_.next_line();
      if (!text) return text.error();
      if (!*text) return std::move(kinds_);
      if ((**text).empty() || (**text).front() == '#') continue;
      if (const auto done = add(line_of(**text)); !done) return done.error();
    }
  }

 private:
  TraceResult<void> add(const Line& line) {
    const std::string_view name = line.words.empty() ? "" : line.words.front();
    if (name == "kind") return begin_kind(line);
    if (kinds_.empty()) return refused("kind", name, "must come before the first convention");
    if (line.words.size() == 1 && line.because.empty()) return add_named(name);
    if (name == "config" && line.words.size() >= 4 && line.words[2] == "only")
      return add_config(line);
    if (name == "config" && line.words.size() == 4 && line.words[2] == "plus")
      return add_config(line);
    if (name == "without" && line.words.size() == 2) return add_without(line.words[1]);
    const bool refuses = name == "refuses" && line.words.size() == 5 && line.words[3] == "as";
    if (!refuses && !(name == "accepts" && line.words.size() == 3))
      return refused("", name,
                     "is no convention: refuses OPERATION CODE as CODE, accepts OPERATION CODE, "
                     "without OPERATION, config MEMBER only VALUE .., config MEMBER plus NUMBER, " +
                         names_of(*kinds_.back().kind));
    return add_refusal(line, refuses);
  }

  TraceResult<void> begin_kind(const Line& line) {
    const std::string_view name = line.words.size() == 2 ? line.words[1] : "";
    const std::size_t dot = std::min(name.find('.'), name.size());
    const CacheKind* kind = find_(name.substr(0, dot), name.substr(std::min(dot + 1, name.size())));
    if (kind == nullptr) return refused("kind", name, "is no known contract and cache");
    if (std::ranges::find(kinds_, kind, &KindConventions::kind) != kinds_.end())
      return refused("kind", name, "is there twice");
    kinds_.push_back({.kind = kind});
    return {};
  }

  TraceResult<void> add_named(std::string_view name) {
    KindConventions& own = kinds_.back();
    if (find_convention(*own.kind, name) == nullptr)
      return refused("", name,
                     "is no convention of " + own.kind->name() + ": " + names_of(*own.kind));
    if (!own.conventions.has(name)) own.conventions.named.emplace_back(name);
    return {};
  }

  // As ConfigConvention has it: the default is 'default'. Nothing: the member has no such value.
  static std::optional<std::string> value_text(const Type& config, const std::string& member,
                                               const boost::json::value& value) {
    boost::json::object members = write_record(Record(config, config.made()));
    members[member] = value;
    JsonFault fault;
    const Record read = read_record(members, config, fault);
    if (!read) return std::nullopt;
    const boost::json::object changed = write_changed(config, read.get());
    const auto* const differs = changed.if_contains(member);
    return differs != nullptr ? boost::json::serialize(*differs) : "default";
  }

  TraceResult<void> add_config(const Line& line) {
    KindConventions& own = kinds_.back();
    const auto& fields = own.kind->config->fields;
    const auto field = std::ranges::find(fields, line.words[1], &Field::name);
    if (field == fields.end())
      return refused("config", line.words[1], "is no member of the config of " + own.kind->name());
    ConfigConvention row{.member = std::string(line.words[1])};
    for (const ConfigConvention& other : own.conventions.configs)
      if (other.member == row.member) return refused("config", row.member, "has an earlier row");
    if (line.words[2] == "plus") {
      const std::string_view number = line.words[3];
      const auto [end, failed] =
          std::from_chars(number.data(), number.data() + number.size(), row.plus);
      if (failed != std::errc() || end != number.data() + number.size() || row.plus == 0 ||
          std::abs(row.plus) > kMostPlus)
        return refused(row.member, number,
                       fmt::format("is no whole number from -{0} to {0} but 0", kMostPlus));
      if (!is_count(*field->type))
        return refused("config", row.member, "is no number of something");
      own.conventions.configs.push_back(std::move(row));
      return {};
    }
    for (std::size_t at = 3; at < line.words.size(); ++at) {
      const std::string_view value = line.words[at];
      const std::string text = line.quoted[at] ? fmt::format("\"{}\"", value) : std::string(value);
      boost::system::error_code failed;
      const boost::json::value parsed = boost::json::parse(text, failed);
      if (failed && text != "default")
        return refused(row.member, value, "is neither 'default' nor JSON without spaces");
      const auto known = failed ? text : value_text(*own.kind->config, row.member, parsed);
      if (!known) return refused(row.member, value, "is no value of this member");
      row.only.push_back(*known);
    }
    own.conventions.configs.push_back(std::move(row));
    return {};
  }

  TraceResult<void> add_without(std::string_view operation) {
    KindConventions& own = kinds_.back();
    if (own.kind->operation(operation) == nullptr)
      return refused("operation", operation, "is no operation of " + own.kind->name());
    for (const RefusalConvention& row : own.conventions.refusals)
      if (row.operation == operation)
        return refused("", fmt::format("without {}", operation),
                       "contradicts an earlier row: " + convention_text(row));
    own.conventions.without.emplace_back(operation);
    return {};
  }

  TraceResult<void> add_refusal(const Line& line, bool refuses) {
    const std::string_view operation = line.words[1];
    const std::string_view wanted = line.words[2];
    KindConventions& own = kinds_.back();
    if (own.kind->operation(operation) == nullptr)
      return refused("operation", operation, "is no operation of " + own.kind->name());
    if (!is_code(wanted)) return refused("code", wanted, "is no error code");
    if (!refuses && !may_be_accepted(wanted))
      return refused("code", wanted,
                     "is no error that a cache may ignore: out_of_range, bad_shape, bad_position, "
                     "precondition");
    RefusalConvention row{.operation = std::string(operation),
                          .wanted = std::string(wanted),
                          .because = std::string(line.because)};
    if (refuses) {
      row.given = std::string(line.words[4]);
      if (!is_code(*row.given)) return refused("code", *row.given, "is no error code");
      if (std::ranges::find(kWordsOfTheHarness, *row.given) != kWordsOfTheHarness.end())
        return refused("code", *row.given, "is no class that a cache may choose");
    }
    if (std::ranges::find(own.conventions.without, operation) != own.conventions.without.end())
      return refused("", convention_text(row),
                     fmt::format("contradicts an earlier row: without {}", operation));
    for (const RefusalConvention& other : own.conventions.refusals)
      if (other.operation == row.operation && other.wanted == row.wanted &&
          other.because == row.because && (other.given == row.given || !other.given || !row.given))
        return refused("", convention_text(row),
                       "contradicts an earlier row: " + convention_text(other));
    own.conventions.refusals.push_back(std::move(row));
    return {};
  }

  [[nodiscard]] TraceError refused(std::string_view field, std::string_view value,
                                   std::string_view problem) const {
    return error_at(source_.place(), field, value, problem);
  }

  TextSource source_;
  const FindKind& find_;
  std::vector<KindConventions> kinds_;
};

}  // namespace

TraceResult<std::vector<KindConventions>> read_conventions(std::string name, std::string_view text,
                                                           const FindKind& find) {
  return ConventionsReader(TextSource::in_memory(std::move(name), text), find).read();
}

bool may_be_accepted(std::string_view code) {
  constexpr std::array<std::string_view, 4> kOfCallers{"out_of_range", "bad_shape", "bad_position",
                                                       "precondition"};
  return std::ranges::find(kOfCallers, code) != kOfCallers.end();
}

std::string convention_text(const RefusalConvention& row) {
  const std::string because = row.because.empty() ? "" : ": " + row.because;
  // Codes of the kind other:.. are sentences.
  const auto code = [](const std::string& text) {
    return text.find(' ') != text.npos ? '"' + text + '"' : text;
  };
  if (!row.given) return fmt::format("accepts {} {}{}", row.operation, code(row.wanted), because);
  return fmt::format("refuses {} {} as {}{}", row.operation, code(row.wanted), code(*row.given),
                     because);
}

std::string convention_text(const ConfigConvention& row) {
  if (row.plus != 0) return fmt::format("config {} plus {}", row.member, row.plus);
  return fmt::format("config {} only {}", row.member, fmt::join(row.only, " "));
}

std::vector<std::string> convention_rows(const Conventions& conventions) {
  std::vector<std::string> rows = conventions.named;
  for (const RefusalConvention& row : conventions.refusals) rows.push_back(convention_text(row));
  for (const ConfigConvention& row : conventions.configs) rows.push_back(convention_text(row));
  for (const std::string& operation : conventions.without) rows.push_back("without " + operation);
  std::ranges::sort(rows);
  return rows;
}

std::string conventions_text(const KindConventions& written) {
  std::string text = "kind " + written.kind->name() + "\n";
  for (const std::string& row : convention_rows(written.conventions)) text += row + "\n";
  return text;
}

}  // namespace kvo::traces
