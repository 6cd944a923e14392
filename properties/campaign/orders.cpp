#include "properties/campaign/orders.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "reference/contract/describe/json.hpp"
#include "reference/contract/describe/parse_json.hpp"
#include "traces/log/case_notation.hpp"

namespace kvo {

using traces::Refusal;
using traces::StatementReader;
using traces::Token;
using traces::Tokens;

namespace {

const traces::Variables& no_variables() {
  static const traces::Variables kNone;
  return kNone;
}

std::string names_of(std::span<const OrderWord> words, bool OrderWord::*use) {
  std::vector<std::string> names;
  for (const OrderWord& word : words)
    if (word.*use) names.emplace_back(word.name);
  return traces::list_text(names);
}

}  // namespace

struct Order::Step {
  /// An operation, or a call of a word.
  struct Target {
    struct Argument {
      const Field* field;
      Tokens value;
    };
    const OpKind* operation = nullptr;
    Record fixed = {};                    ///< arguments that are the same each time
    std::vector<Argument> computed = {};  ///< the others
    const OrderWord* word = nullptr;      ///< where `operation` is null
    std::vector<Tokens> arguments = {};   ///< of the word
  };

  /// One of the alternatives of a step.
  struct Choice {
    Target target;
    Tokens condition = {};  ///< empty: always
    std::optional<Target> otherwise = {};
  };

  enum class Kind : std::uint8_t { kNeeds, kLet, kDraw };
  Kind kind;
  Tokens expression = {};            ///< of kNeeds and kLet
  Tokens condition = {};             ///< of kLet; empty: always
  std::string variable = {};         ///< of kLet
  std::vector<Choice> choices = {};  ///< of kDraw
  std::span<const OrderWord> words = {};
};

Order::Order(std::string label, std::uint64_t weight, std::optional<Profile> only,
             std::vector<Step> steps)
    : label_(std::move(label)),
      weight_(weight),
      only_(only),
      steps_(std::make_shared<const std::vector<Step>>(std::move(steps))) {}

// ---- Reading ----

namespace {

using Target = Order::Step::Target;
using Choice = Order::Step::Choice;

// The lines of a kind, with their numbers: those of others are empty.
std::string lines_of(const CacheKind& kind, std::string_view text) {
  std::string ours;
  bool is_ours = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const bool begins = line.starts_with("kind ");
    if (begins) is_ours = fmt::format("{} ", line).find(" " + kind.name() + " ") != line.npos;
    if (is_ours && !begins) ours += line;
    ours += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return ours;
}

class OrderReader {
 public:
  OrderReader(std::string_view text, const CacheKind& kind, std::span<const OrderWord> words)
      : kind_(kind), words_(words), statements_(traces::statements_of(lines_of(kind, text))) {}

  Orders orders() {
    while (at_ < statements_.size()) read_order();
    return std::move(orders_);
  }

 private:
  [[noreturn]] static void refuse(const Token& token, const std::string& problem) {
    throw Refusal{token.line, "", token.text, problem};
  }

  void read_order() {
    const Token header = statements_[at_].front();
    StatementReader reader(statements_[at_++], no_variables());
    if (!reader.take("order")) refuse(header, "begins no `order`, and is in none");
    std::string label = reader.next("a name").text;
    std::ranges::replace(label, '_', ' ');
    if (std::ranges::find(orders_, label, &Order::label) != orders_.end())
      refuse(header, "begins a second order of the name of one before");
    if (!reader.take("weight")) reader.refuse("", "is not the expected `weight`");
    const std::int64_t weight = reader.integer();
    if (weight <= 0) refuse(header, "begins an order whose weight is not positive");
    std::optional<Profile> only;
    if (reader.take("original")) only = Profile::kOriginal;
    if (reader.take("documented")) only = Profile::kDocumented;
    reader.expect_end();
    std::vector<Order::Step> steps;
    read_steps(steps);
    const auto draws = [](const Choice& choice) {
      const auto gives = [](const Target& target) {
        return target.operation != nullptr || !target.word->is_value;
      };
      return gives(choice.target) && (!choice.otherwise || gives(*choice.otherwise));
    };
    if (steps.empty() || steps.back().kind != Order::Step::Kind::kDraw ||
        !std::ranges::all_of(steps.back().choices, draws))
      refuse(header, "begins an order that does not end with an operation");
    orders_.emplace_back(std::move(label), static_cast<std::uint64_t>(weight), only,
                         std::move(steps));
  }

  // Up to the next order, or to the `end` of `times`.
  void read_steps(std::vector<Order::Step>& steps) {
    while (at_ < statements_.size()) {
      const Tokens& statement = statements_[at_];
      if (statement.front().is("order") || statement.front().is("end")) return;
      if (statement.front().is("for") || (statement.size() == 2 && statement[1].is("times")))
        read_repeated(steps);
      else
        read_step(statements_[at_++], steps);
    }
  }

  // `COUNT times` or `for NAME FIRST to LAST`.
  void read_repeated(std::vector<Order::Step>& steps) {
    constexpr std::int64_t kMost = 1'000;
    const Token& header = statements_[at_].front();
    StatementReader reader(statements_[at_++], no_variables());
    std::string variable;
    if (reader.take("for")) variable = reader.next("a variable").text;
    const std::int64_t first = reader.integer();
    const std::int64_t last = reader.take("to") ? reader.integer() : first;
    const std::int64_t count = variable.empty() ? first : last - first + 1;
    if (count < 1 || count > kMost) refuse(header, "begins no loop of 1 to 1000 times");
    variables_.insert(variable);
    std::vector<Order::Step> repeated;
    read_steps(repeated);
    if (at_ == statements_.size() || !statements_[at_].front().is("end"))
      refuse(header, "begins steps without `end`");
    ++at_;
    for (std::int64_t i = 0; i < count; ++i) {
      if (!variable.empty())
        steps.push_back({.kind = Order::Step::Kind::kLet,
                         .expression = {{Token::Kind::kNumber, std::to_string(first + i)}},
                         .variable = variable,
                         .words = words_});
      steps.insert(steps.end(), repeated.begin(), repeated.end());
    }
  }

  void read_step(const Tokens& statement, std::vector<Order::Step>& steps) {
    using Kind = Order::Step::Kind;
    const auto rest = [&](std::size_t from) {
      if (statement.size() <= from) refuse(statement.front(), "is followed by nothing");
      Tokens tokens(statement.begin() + static_cast<std::ptrdiff_t>(from), statement.end());
      check_expression(tokens);
      return tokens;
    };
    Order::Step step{.kind = Kind::kDraw, .words = words_};
    if (statement.front().is("needs")) {
      step.kind = Kind::kNeeds;
      step.expression = rest(1);
    } else if (statement.front().is("let")) {
      step.kind = Kind::kLet;
      const auto by_if = parts(rest(2), "if");
      step.expression = by_if.front();
      if (by_if.size() > 1) step.condition = by_if[1];
      step.variable = statement[1].text;
      variables_.insert(step.variable);
    } else {
      for (const Tokens& part : parts(statement, "|")) step.choices.push_back(choice(part));
    }
    steps.push_back(std::move(step));
  }

  // The tokens between `mark`s that are in no brackets.
  static std::vector<Tokens> parts(const Tokens& tokens, std::string_view mark) {
    std::vector<Tokens> all(1);
    std::size_t depth = 0;
    for (const Token& token : tokens) {
      if (token.is("[") || token.is("(") || token.is("{")) ++depth;
      if ((token.is("]") || token.is(")") || token.is("}")) && depth > 0) --depth;
      if (depth == 0 && token.is(mark))
        all.emplace_back();
      else
        all.back().push_back(token);
    }
    for (const Tokens& part : all)
      if (part.empty()) refuse(tokens.front(), "has nothing beside `" + std::string(mark) + "`");
    return all;
  }

  Choice choice(const Tokens& tokens) {
    const auto by_if = parts(tokens, "if");
    Choice read{.target = target(by_if.front())};
    if (by_if.size() == 1) return read;
    const auto by_else = parts(by_if[1], "else");
    check_expression(by_else.front());
    read.condition = by_else.front();
    if (by_else.size() > 1) read.otherwise = target(by_else[1]);
    return read;
  }

  Target target(const Tokens& tokens) {
    const Token& first = tokens.front();
    if (const OpKind* operation = kind_.operation(first.text))
      return operation_of(*operation, tokens);
    const auto word = std::ranges::find(words_, first.text, &OrderWord::name);
    if (word == words_.end() || !word->is_step)
      refuse(first, "is no operation of " + kind_.name() +
                        " and no step of its script: " + names_of(words_, &OrderWord::is_step));
    Target read{.word = &*word};
    const Tokens after(tokens.begin() + 1, tokens.end());
    if (!after.empty()) read.arguments = parts(after, ",");
    if (read.arguments.size() != word->arguments)
      refuse(first, "has " + std::to_string(word->arguments) + " arguments, not " +
                        std::to_string(read.arguments.size()));
    for (const Tokens& argument : read.arguments) check_expression(argument);
    return read;
  }

  // "NAME VALUE" is kept where it names words, and is read where it does not.
  Target operation_of(const OpKind& operation, const Tokens& tokens) {
    Target read{.operation = &operation};
    Tokens fixed{tokens.front()};
    const Tokens after(tokens.begin() + 1, tokens.end());
    if (!after.empty())
      for (const Tokens& member : parts(after, ",")) {
        const auto field =
            std::ranges::find(operation.arguments->fields, member.front().text, &Field::name);
        const bool known = field != operation.arguments->fields.end();
        const Tokens value(member.begin() + 1, member.end());
        if (known && std::ranges::any_of(value, [&](const Token& one) { return is_value(one); })) {
          check_expression(value);
          read.computed.push_back({&*field, value});
          continue;
        }
        if (fixed.size() > 1) fixed.push_back({.text = ",", .line = member.front().line});
        fixed.insert(fixed.end(), member.begin(), member.end());
      }
    StatementReader reader(fixed, no_variables());
    read.fixed = reader.operation(kind_).arguments();
    reader.expect_end();
    return read;
  }

  static bool is_function(const Token& token) {
    return token.is("any") || token.is("min") || token.is("max");
  }
  [[nodiscard]] bool is_value(const Token& token) const {
    if (token.kind != Token::Kind::kWord) return false;
    const auto word = std::ranges::find(words_, token.text, &OrderWord::name);
    return is_function(token) || variables_.contains(token.text) ||
           (word != words_.end() && word->is_value);
  }
  void check_expression(const Tokens& tokens) const {
    for (const Token& token : tokens)
      if (token.kind == Token::Kind::kWord && !is_value(token) && !token.is("times") &&
          !token.is("to") && !token.is("if"))
        refuse(token, "is no value: any(LOW, HIGH), min(A, B), max(A, B), a value of `let`, " +
                          names_of(words_, &OrderWord::is_value));
  }

  const CacheKind& kind_;
  std::span<const OrderWord> words_;
  std::vector<Tokens> statements_;
  std::size_t at_ = 0;
  std::set<std::string> variables_;
  Orders orders_;
};

}  // namespace

traces::TraceResult<Orders> read_orders(std::string_view name, std::string_view text,
                                        const CacheKind& kind, std::span<const OrderWord> words) {
  try {
    return OrderReader(text, kind, words).orders();
  } catch (const Refusal& refusal) {
    return traces::error_at({name, refusal.line}, refusal.field, refusal.value, refusal.problem);
  }
}

Orders orders_of(const CacheKind& kind, std::span<const OrderWord> words) {
  for (const traces::EmbeddedFile& file : order_files())
    if (file.name.find("/" + std::string(kind.contract) + "/") != std::string_view::npos)
      return read_orders(file.name, file.text, kind, words).value();
  return {};
}

// ---- Following ----

namespace {

class Values final : public traces::Names {
 public:
  using Locals = std::map<std::string, std::int64_t, std::less<>>;

  Values(const OrderScript& script, std::span<const OrderWord> words, const Locals& locals)
      : script_(script), words_(words), locals_(locals) {}

  [[nodiscard]] std::optional<std::int64_t> value(
      std::string_view name, const std::vector<std::int64_t>& arguments) const override {
    if (arguments.size() == 2) {
      if (name == "any") return script_.draw->between(arguments[0], arguments[1]);
      if (name == "min") return std::min(arguments[0], arguments[1]);
      if (name == "max") return std::max(arguments[0], arguments[1]);
    }
    if (const auto local = locals_.find(name); local != locals_.end()) return local->second;
    const auto word = std::ranges::find(words_, name, &OrderWord::name);
    if (word == words_.end() || !word->is_value || word->arguments != arguments.size())
      return std::nullopt;
    return word->call(script_.script, arguments).value;
  }

  [[nodiscard]] std::int64_t integer(const Tokens& tokens) const {
    StatementReader reader(tokens, no_variables(), this);
    const std::int64_t value = reader.integer();
    reader.expect_end();
    return value;
  }

  [[nodiscard]] bool holds(const Tokens& tokens) const {
    StatementReader reader(tokens, no_variables(), this);
    const std::int64_t left = reader.integer();
    if (reader.at_end()) return left != 0;
    const std::string mark = reader.next("a comparison").text;
    const bool equals = reader.take("=");
    const std::int64_t right = reader.integer();
    reader.expect_end();
    if (mark == "<") return equals ? left <= right : left < right;
    if (mark == ">") return equals ? left >= right : left > right;
    if (mark == "!" && equals) return left != right;
    if (mark == "=" && !equals) return left == right;
    throw Refusal{tokens.front().line, "", mark, "is none of the comparisons <, <=, >, >=, =, !="};
  }

  [[nodiscard]] WordResult drawn(const Target& target) const {
    if (target.operation != nullptr) return {.operation = operation(target)};
    std::vector<std::int64_t> arguments;
    for (const Tokens& tokens : target.arguments) arguments.push_back(integer(tokens));
    return target.word->call(script_.script, arguments);
  }

 private:
  [[nodiscard]] Op operation(const Target& target) const {
    const Type& type = target.fixed.type();
    const std::shared_ptr<void> made = type.copy_of(target.fixed.get());
    for (const Target::Argument& argument : target.computed) {
      StatementReader reader(argument.value, no_variables(), this);
      JsonFault fault;
      if (!read_json(reader.value(*argument.field->type, StatementReader::Missing::kDefault),
                     *argument.field->type, argument.field->of(made.get()), fault))
        throw Refusal{argument.value.front().line, std::string(argument.field->name), fault.value,
                      fault.problem};
      reader.expect_end();
    }
    return {*target.operation, Record(type, made)};
  }

  const OrderScript& script_;
  std::span<const OrderWord> words_;
  const Locals& locals_;
};

}  // namespace

std::optional<Op> FollowedOrder::next(const OrderScript& script) {
  while (!is_complete()) {
    const Order::Step& step = (*order_->steps_)[at_++];
    const Values values(script, step.words, values_);
    if (step.kind == Order::Step::Kind::kNeeds) {
      if (!values.holds(step.expression)) return std::nullopt;
      continue;
    }
    if (step.kind == Order::Step::Kind::kLet) {
      if (step.condition.empty() || values.holds(step.condition))
        values_.insert_or_assign(step.variable, values.integer(step.expression));
      continue;
    }
    const Choice& choice = step.choices[script.draw->below(step.choices.size())];
    const bool holds = choice.condition.empty() || values.holds(choice.condition);
    if (!holds && !choice.otherwise) continue;
    WordResult drawn = values.drawn(holds ? choice.target : *choice.otherwise);
    if (!drawn.possible) return std::nullopt;
    if (drawn.operation) return std::move(drawn.operation);
  }
  return std::nullopt;
}

bool FollowedOrder::is_complete() const {
  return at_ == order_->steps_->size();
}

}  // namespace kvo
