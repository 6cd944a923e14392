#include "traces/log/cases.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "reference/contract/describe/json.hpp"
#include "traces/log/case_notation.hpp"

namespace kvo::traces {
namespace {

constexpr std::size_t kMostOfCase = 100'000;
constexpr std::size_t kMostOfFile = 1'000'000;
constexpr std::size_t kMostLoops = 16;  // one in another

constexpr std::array kProfiles{Profile::kOriginal, Profile::kDocumented};

std::string_view word_of(Profile profile) {
  return profile == Profile::kOriginal ? "original" : "documented";
}

/// A case, and of each of its operations the answers in both profiles.
struct StatedCase {
  Case written;
  std::vector<Answers> answers = {};
};

/// A loop that runs: its variables, and the values of each turn.
struct Loop {
  std::vector<std::string> names = {};
  std::vector<std::vector<Tokens>> turns = {};
};

/// Reads the statements of a file.
class FileReader {
 public:
  FileReader(std::string_view text, const FindKind& find)
      : statements_(statements_of(text)), find_(find) {}

  std::vector<StatedCase> cases() {
    for (std::size_t at = 0; at < statements_.size();) {
      if (begins(at, "kind")) {
        read_kinds(at++);
      } else if (begins(at, "config")) {
        defaults_ = &statements_[at++];
      } else if (begins(at, "case")) {
        std::size_t end = at + 1;
        while (end < statements_.size() && !begins(end, "case") && !begins(end, "kind")) ++end;
        read_case(at, end);
        at = end;
      } else {
        refuse(at, "is none of kind, config and case");
      }
    }
    return std::move(cases_);
  }

 private:
  [[nodiscard]] bool begins(std::size_t at, std::string_view word) const {
    return statements_[at].front().is(word);
  }
  [[nodiscard]] bool is_times(std::size_t at) const {
    return statements_[at].size() > 1 && statements_[at].back().is("times") &&
           statements_[at].front().kind == Token::Kind::kNumber;
  }
  [[nodiscard]] bool is_loop(std::size_t at) const { return begins(at, "for") || is_times(at); }

  [[noreturn]] void refuse(std::size_t at, const std::string& problem) const {
    const Token& first = statements_[at].front();
    throw Refusal{first.line, "", first.text, problem};
  }

  // After its first word.
  [[nodiscard]] StatementReader rest_of(std::size_t at) const {
    StatementReader reader(statements_[at], variables_);
    (void)reader.next("");
    return reader;
  }

  void read_kinds(std::size_t at) {
    kinds_.clear();
    defaults_ = nullptr;
    StatementReader reader = rest_of(at);
    do {
      const std::string name = reader.joined("a kind: provider.paged");
      const std::size_t dot = std::min(name.find('.'), name.size());
      kinds_.push_back(find_(name.substr(0, dot), name.substr(std::min(dot + 1, name.size()))));
      if (kinds_.back() == nullptr)
        throw Refusal{statements_[at].front().line, "kind", name,
                      "is no known contract and cache: CONTRACT.CACHE, as `list` shows them"};
    } while (!reader.at_end());
  }

  void read_case(std::size_t at, std::size_t end) {
    if (kinds_.empty()) refuse(at, "must be after `kind CONTRACT.CACHE`");
    header_ = {.line = statements_[at].front().line, .stated = true};
    read_name(at);
    profiles_.assign(kProfiles.begin(), kProfiles.end());
    config_ = nullptr;
    std::vector<std::size_t> loops;
    const std::map<std::size_t, std::size_t> ends = ends_of_loops(at + 1, end);
    std::size_t first = at + 1;
    for (; first < end; ++first) {
      if (begins(first, "both") || begins(first, "profile"))
        read_profiles(first);
      else if (begins(first, "config"))
        config_ = &statements_[first];
      else if (begins(first, "for") && !ends.contains(first))
        loops.push_back(first);
      else
        break;
    }
    if (first == end) refuse(at, "is a case without operations");
    end_ = end;
    loop_ends_ = ends;
    expand(loops, 0, first);
  }

  void read_name(std::size_t at) {
    StatementReader reader = rest_of(at);
    header_.name = reader.joined("a name");
    if (reader.at_end()) return;
    if (!reader.take("rules")) reader.refuse("", "is not the expected `rules`");
    do {
      const std::string rule = reader.joined("a rule number: PX-2");
      const auto dash = rule.find('-');
      const bool is_rule =
          dash != std::string::npos && dash > 0 && dash + 1 < rule.size() &&
          std::all_of(rule.begin(), rule.begin() + static_cast<std::ptrdiff_t>(dash),
                      [](char c) { return c >= 'A' && c <= 'Z'; }) &&
          rule.find_first_not_of("0123456789", dash + (rule[dash + 1] == 'A' ? 2 : 1)) ==
              std::string::npos;
      if (!is_rule)
        throw Refusal{header_.line, "rules", rule,
                      "is no rule number: capitals, -, digits: PX-2, MR-A6"};
      header_.rules.push_back(rule);
    } while (!reader.at_end());
  }

  void read_profiles(std::size_t at) {
    StatementReader reader = rest_of(at);
    const bool both = begins(at, "both");
    const Token word = reader.next(both ? "profiles" : "original or documented");
    profiles_.clear();
    for (const Profile profile : kProfiles)
      if (both || word.is(word_of(profile))) profiles_.push_back(profile);
    if (profiles_.empty() || (both && !word.is("profiles")))
      throw Refusal{
          word.line, "", word.text,
          both ? "is not the expected `profiles`" : "is no profile: original or documented"};
    reader.expect_end();
  }

  // The statement `end` of each loop that has one.
  [[nodiscard]] std::map<std::size_t, std::size_t> ends_of_loops(std::size_t begin,
                                                                 std::size_t end) const {
    std::map<std::size_t, std::size_t> ends;
    std::vector<std::size_t> open;
    for (std::size_t at = begin; at < end; ++at) {
      if (is_loop(at)) open.push_back(at);
      if (open.size() > kMostLoops)
        refuse(at, "is in more than " + std::to_string(kMostLoops) + " loops");
      if (!begins(at, "end")) continue;
      if (open.empty()) refuse(at, "ends no loop");
      ends.emplace(open.back(), at);
      open.pop_back();
    }
    return ends;
  }

  [[nodiscard]] Loop read_loop(std::size_t at) const {
    Loop loop;
    StatementReader reader(statements_[at], variables_);
    if (is_times(at)) {
      const std::int64_t times = reader.integer();
      (void)reader.next("times");
      reader.expect_end();
      if (times < 1 || static_cast<std::size_t>(times) > kMostOfCase)
        refuse(at, "is not a number of turns from 1 to " + std::to_string(kMostOfCase));
      loop.turns.resize(static_cast<std::size_t>(times));
      return loop;
    }
    (void)reader.next("");
    const bool several = reader.take("(");
    do {
      const Token name = reader.next("a variable");
      if (name.kind != Token::Kind::kWord)
        throw Refusal{name.line, "", name.text, "is no name of a variable"};
      if (variables_.contains(name.text))
        throw Refusal{name.line, "", name.text, "is the variable of a loop around this one"};
      loop.names.push_back(name.text);
    } while (several && reader.take(","));
    if (several && !reader.take(")")) reader.refuse("", "is neither , nor )");
    const std::vector<Tokens> values = reader.loop_values();
    if (values.empty())
      throw Refusal{statements_[at].front().line, "", loop.names.front(), "has no values"};
    for (const Tokens& value : values) {
      loop.turns.push_back(several ? parts_of(value) : std::vector<Tokens>{value});
      if (loop.turns.back().size() != loop.names.size())
        throw Refusal{value.front().line, "", value.front().text,
                      "begins no (VALUE, VALUE) with a value for each variable"};
    }
    return loop;
  }

  // The parts of "(a, [1,2])".
  static std::vector<Tokens> parts_of(const Tokens& value) {
    std::vector<Tokens> parts;
    if (!value.front().is("(")) return parts;
    std::size_t depth = 0;
    for (std::size_t i = 0; i + 1 < value.size(); ++i) {
      const Token& token = value[i];
      if (i == 0 || (depth == 1 && token.is(","))) {
        parts.emplace_back();
        if (i == 0) ++depth;
        continue;
      }
      if (token.is("[") || token.is("{") || token.is("(")) ++depth;
      if (token.is("]") || token.is("}") || token.is(")")) --depth;
      parts.back().push_back(token);
    }
    return parts;
  }

  void bind(const Loop& loop, std::size_t turn) {
    for (std::size_t i = 0; i < loop.names.size(); ++i)
      variables_[loop.names[i]] = loop.turns[turn][i];
  }
  void unbind(const Loop& loop) {
    for (const std::string& name : loop.names) variables_.erase(name);
  }

  // "=8" of a number or word; else the number of the turn, ".2".
  static std::string text_in_name(const Tokens& value, std::size_t turn) {
    const bool negative = value.size() == 2 && value.front().is("-");
    const Token::Kind kind = value.back().kind;
    if ((value.size() > 1 && !negative) ||
        (kind != Token::Kind::kWord && kind != Token::Kind::kNumber))
      return "." + std::to_string(turn + 1);
    return (negative ? "=-" : "=") + value.back().text;
  }

  // A case for each turn of the loops in its head, kind and profile.
  void expand(const std::vector<std::size_t>& loops, std::size_t next, std::size_t first) {
    if (next < loops.size()) {
      const Loop loop = read_loop(loops[next]);
      const std::string name = header_.name;
      for (std::size_t turn = 0; turn < loop.turns.size(); ++turn) {
        bind(loop, turn);
        for (std::size_t i = 0; i < loop.names.size(); ++i)
          header_.name += "/" + loop.names[i] + text_in_name(loop.turns[turn][i], turn);
        expand(loops, next + 1, first);
        header_.name = name;
      }
      return unbind(loop);
    }
    for (const CacheKind* kind : kinds_)
      for (const Profile profile : profiles_) {
        StatedCase made{{header_}};
        made.written.header.kind = kind;
        made.written.header.profile = profile;
        if (kinds_.size() > 1) made.written.header.name += "/" + kind->name();
        if (profiles_.size() > 1) made.written.header.name += "/" + std::string(word_of(profile));
        made.written.header.config = config_of(*kind);
        case_ = &made;
        run(first, end_);
        cases_.push_back(std::move(made));
      }
  }

  [[nodiscard]] Record config_of(const CacheKind& kind) const {
    const Type& type = *kind.config;
    boost::json::object members = write_json(type, type.made().get()).as_object();
    std::uint64_t line = header_.line;
    for (const Tokens* tokens : {defaults_, config_}) {
      if (tokens == nullptr) continue;
      line = tokens->front().line;
      StatementReader reader(*tokens, variables_);
      (void)reader.next("");
      members = reader.members(type, std::move(members));
      reader.expect_end();
    }
    return record_of(members, type, line);
  }

  void run(std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; ++at) {
      if (!is_loop(at)) {
        add_operation(at);
        continue;
      }
      const auto last = loop_ends_.find(at);
      if (last == loop_ends_.end()) refuse(at, "begins a loop without `end`");
      if (last->second == at + 1) refuse(at, "begins a loop without operations");
      const Loop loop = read_loop(at);
      for (std::size_t turn = 0; turn < loop.turns.size(); ++turn) {
        bind(loop, turn);
        run(at + 1, last->second);
      }
      unbind(loop);
      at = last->second;
    }
  }

  void add_operation(std::size_t at) {
    for (const std::string_view word : {"config", "profile", "both", "rules"})
      if (begins(at, word)) refuse(at, "must be before the first operation of the case");
    Case& written = case_->written;
    if (written.steps.size() == kMostOfCase || ++operations_ > kMostOfFile)
      refuse(at, "is after " + std::to_string(kMostOfCase) + " operations of the case, or " +
                     std::to_string(kMostOfFile) + " of the file");
    StatementReader reader(statements_[at], variables_);
    const Op op = reader.operation(*written.header.kind);
    Answers answers = reader.answers(op.kind());
    for (const Profile profile : kProfiles) {
      const bool runs = std::ranges::find(profiles_, profile) != profiles_.end();
      const auto index = static_cast<std::size_t>(profile);
      if (runs ? !answers.of.at(index).has_value() : answers.named.at(index))
        throw Refusal{statements_[at].front().line, "", std::string(op.kind().name),
                      (runs ? "has no answer in profile " : "has an answer in another profile, ") +
                          std::string(word_of(profile))};
    }
    written.steps.push_back({op,
                             answers.of[static_cast<std::size_t>(*written.header.profile)]->wanted,
                             statements_[at].front().line});
    case_->answers.push_back(std::move(answers));
  }

  std::vector<Tokens> statements_;
  const FindKind& find_;
  std::vector<const CacheKind*> kinds_;
  const Tokens* defaults_ = nullptr;  ///< config of the cases that follow
  // Of the case that is read.
  CaseHeader header_;
  std::vector<Profile> profiles_;
  const Tokens* config_ = nullptr;
  std::size_t end_ = 0;
  std::map<std::size_t, std::size_t> loop_ends_;
  Variables variables_;
  StatedCase* case_ = nullptr;
  std::size_t operations_ = 0;
  std::vector<StatedCase> cases_;
};

TraceResult<std::vector<StatedCase>> read_stated(std::string_view name, std::string_view text,
                                                 const FindKind& find) {
  try {
    return FileReader(text, find).cases();
  } catch (const Refusal& refusal) {
    return error_at({name, refusal.line}, refusal.field, refusal.value, refusal.problem);
  }
}

const Answer& answer_of(const StatedCase& stated, std::size_t step) {
  return *stated.answers[step].of[static_cast<std::size_t>(*stated.written.header.profile)];
}

// What follows `->`; an answer that is empty is of no profile that runs.
std::string both_answers(const std::string& original, const std::string& documented) {
  if (original.empty() || original == documented) return documented;
  return documented.empty() ? original : original + " | documented: " + documented;
}

// On several lines where it is long. Lines are broken after commas, `->` and `|`.
std::string wrapped(std::string_view statement) {
  constexpr std::size_t kLongest = 100;
  std::string text;
  std::size_t begin = 0;  // of the line
  std::size_t last = 0;   // where it may be broken
  bool quoted = false;
  for (const char c : statement) {
    if (c == '"' && !text.ends_with('\\')) quoted = !quoted;
    text += c;
    const bool ends = c == ',' || text.ends_with(" ->") || text.ends_with(" |");
    if (ends && !quoted) last = text.size();
    if (text.size() - begin <= kLongest || last <= begin) continue;
    const std::size_t rest = text.find_first_not_of(' ', last);
    text.replace(last, std::min(rest, text.size()) - last, "\n    ");
    begin = last + 1;
    last = 0;
  }
  return text;
}

}  // namespace

bool holds_rule_cases(std::string_view name) {
  return name.ends_with(".cases");
}

TraceResult<std::string> text_of(TextSource source) {
  std::string text;
  while (true) {
    const auto line = source.next_line();
    if (!line) return line.error();
    if (!*line) break;
    if (text.size() + (*line)->size() >= kMaxLineBytes)
      return error_at(source.place(), "", "", "the file has more than 16 MiB");
    text.append(**line).push_back('\n');
  }
  return TraceResult<std::string>(boost::system::in_place_value, std::move(text));
}

TraceResult<std::vector<Case>> read_cases(std::string_view name, std::string_view text,
                                          const FindKind& find) {
  auto stated = read_stated(name, text, find);
  if (!stated) return std::move(stated).error();
  std::vector<Case> cases;
  for (StatedCase& each : *stated) {
    for (std::size_t i = 0; i < each.answers.size(); ++i)
      if (answer_of(each, i).open)
        return error_at({name, each.written.steps[i].line}, "", "?",
                        "is no answer: `conform --update` writes it");
    cases.push_back(std::move(each.written));
  }
  return cases;
}

TraceResult<std::string> updated_cases(std::string_view name, std::string_view text,
                                       const FindKind& find, const ObserveCase& observe) {
  const auto stated = read_stated(name, text, find);
  if (!stated) return stated.error();
  struct Edit {
    Answers answers;
    std::array<std::string, 2> texts = {};
    bool changed = false;
  };
  std::map<std::size_t, Edit, std::greater<>> edits;  // by place, the last first
  for (const StatedCase& each : *stated) {
    const std::vector<Observation> seen = observe(each.written);
    if (seen.size() < each.answers.size())
      return error_at({name, each.written.header.line}, "case", each.written.header.name,
                      "has a config that the reference does not support");
    for (std::size_t i = 0; i < each.answers.size(); ++i) {
      const Profile profile = *each.written.header.profile;
      const Answer& answer = answer_of(each, i);
      Edit& edit = edits[each.answers[i].end];
      edit.answers = each.answers[i];
      const bool differs = profile == Profile::kDocumented &&
                           observation_difference(answer.wanted, seen[i]).has_value();
      std::string written(text.substr(answer.begin, answer.end - answer.begin));
      if (answer.open || differs)
        written = answer_text(answer.open ? seen[i] : narrowed_like(seen[i], answer.wanted));
      if (written.empty()) written = "ok";
      std::string& place = edit.texts[static_cast<std::size_t>(profile)];
      if (!place.empty() && place != written)
        return error_at({name, each.written.steps[i].line}, each.written.header.name, written,
                        "is the answer of one turn, and another turn has " + place);
      place = std::move(written);
      edit.changed = edit.changed || answer.open || differs;
    }
  }
  std::string updated(text);
  for (const auto& [end, edit] : edits) {
    if (!edit.changed) continue;
    const std::size_t begin = edit.answers.begin;
    const std::string both = both_answers(edit.texts[0], edit.texts[1]);
    updated.replace(begin > 0 ? begin : end, begin > 0 ? end - begin : 0,
                    begin > 0 ? both : " -> " + both);
  }
  return TraceResult<std::string>(boost::system::in_place_value, std::move(updated));
}

std::string case_text(const Case& written, const std::vector<Observation>* documented) {
  const CaseHeader& header = written.header;
  std::string text = header.note.empty() ? "" : "# " + header.note + "\n";
  text += "case " + header.name;
  for (const std::string& rule : header.rules)
    text += (&rule == header.rules.data() ? " rules " : " ") + rule;
  text += documented == nullptr
              ? "\nprofile " + std::string(word_of(header.profile.value_or(Profile::kOriginal)))
              : "";
  text += "\n";
  if (const std::string config = config_words(header.config); !config.empty())
    text += wrapped("config " + config) + "\n";
  for (std::size_t i = 0; i < written.steps.size(); ++i) {
    const Step& step = written.steps[i];
    const Observation wanted = step.recorded.value_or(Observation());
    std::string answer = answer_text(wanted);
    if (documented != nullptr) {
      const bool differs = observation_difference(wanted, (*documented)[i]).has_value();
      std::string other = differs ? answer_text(narrowed_like((*documented)[i], wanted)) : answer;
      if (other != answer)
        answer = both_answers(answer.empty() ? "ok" : answer, other.empty() ? "ok" : other);
    }
    text += wrapped(operation_text(step.op) + (answer.empty() ? "" : " -> " + answer)) + "\n";
  }
  return text + "\n";
}

}  // namespace kvo::traces
