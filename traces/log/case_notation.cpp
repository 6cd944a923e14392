#include "traces/log/case_notation.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <functional>
#include <set>
#include <utility>

#include "reference/contract/describe/element.hpp"
#include "reference/contract/describe/json.hpp"
#include "reference/contract/describe/parse_json.hpp"
#include "reference/contract/values/numeric.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::traces {
namespace {

namespace json = boost::json;

// Larger lists and tensors, and deeper brackets, are refused.
constexpr std::int64_t kMostElements = std::int64_t{1} << 22U;
constexpr std::size_t kDeepest = 32;
constexpr int kDecimal = 10;
constexpr int kHexadecimal = 16;

constexpr std::array<std::string_view, 2> kProfileWords{"original", "documented"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<Tokens> statements() {
    while (at_ < text_.size()) scan();
    end_statement();
    return std::move(statements_);
  }

 private:
  void scan() {
    const char c = text_[at_];
    if (c == '\n') {
      const bool goes_on =
          depth_ > 0 || (!statement_.empty() && (last_is(",") || last_is("->") || last_is("|")));
      if (!goes_on) end_statement();
      ++line_;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == ';') {
      end_statement();
      ++at_;
    } else if (c == '"') {
      add_string();
    } else {
      add_other(c);
    }
  }

  [[nodiscard]] bool last_is(std::string_view mark) const { return statement_.back().is(mark); }

  void end_statement() {
    if (!statement_.empty()) statements_.push_back(std::move(statement_));
    statement_.clear();
    depth_ = 0;
  }

  void add(Token::Kind kind, std::size_t end, std::string text) {
    statement_.push_back({kind, std::move(text), line_, at_, end});
    at_ = end;
  }

  void add_string() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n')
      end += text_[end] == '\\' ? 2 : 1;
    boost::system::error_code failure;
    json::value parsed;
    if (end < text_.size() && text_[end] == '"')
      parsed = parse_json(text_.substr(at_, end + 1 - at_), failure);
    if (failure || !parsed.is_string())
      throw Refusal{line_, "", std::string(text_.substr(at_, std::min(end, text_.size()) - at_)),
                    "is no string that ends in its line, with the escapes of JSON"};
    add(Token::Kind::kString, end + 1, std::string(parsed.get_string()));
  }

  void add_other(char c) {
    std::size_t end = at_ + 1;
    const auto while_in = [&](const auto& belongs) {
      while (end < text_.size() && belongs(text_[end])) ++end;
      return std::string(text_.substr(at_, end - at_));
    };
    if (is_letter(c)) {
      std::string word = while_in([](char one) { return is_letter(one) || is_digit(one); });
      return add(Token::Kind::kWord, end, std::move(word));
    }
    if (is_digit(c)) {
      const bool hexadecimal = text_.substr(at_, 2) == "0x";
      std::string number = while_in([&](char one) {
        const bool sign = (one == '+' || one == '-') && !hexadecimal &&
                          (text_[end - 1] == 'e' || text_[end - 1] == 'E');
        return is_letter(one) || is_digit(one) || one == '.' || sign;
      });
      return add(Token::Kind::kNumber, end, std::move(number));
    }
    if (text_.substr(at_, 2) == "->") return add(Token::Kind::kMark, at_ + 2, "->");
    constexpr std::string_view kMarks = "[](){},|:?.+-*/%=<>!";
    if (kMarks.find(c) == std::string_view::npos)
      throw Refusal{line_, "", std::string(1, c), "begins no word, number, string or comment"};
    if (c == '[' || c == '(' || c == '{') ++depth_;
    if ((c == ']' || c == ')' || c == '}') && depth_ > 0) --depth_;
    add(Token::Kind::kMark, end, std::string(1, c));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint64_t line_ = 1;
  std::size_t depth_ = 0;
  Tokens statement_;
  std::vector<Tokens> statements_;
};

// ---- Partial answers ----

// Marks a member of an answer that must be absent.
const json::value& absent_member() {
  static const json::value kAbsent = json::object{{"", nullptr}};
  return kAbsent;
}

void remove_absent(json::value& value) {
  if (value.is_array())
    for (json::value& element : value.get_array()) remove_absent(element);
  if (!value.is_object()) return;
  std::vector<std::string> absent;
  for (auto& member : value.get_object()) {
    if (member.value() == absent_member()) absent.emplace_back(member.key());
    remove_absent(member.value());
  }
  for (const std::string& name : absent) value.get_object().erase(name);
}

using Values = std::vector<const json::value*>;
using Pool = std::deque<Type>;

// `type` with the members alone that one of `values` names. New types are put into `pool`.
const Type& narrowed(const Type& type, const Values& values, Pool& pool) {
  Type made = type;
  bool changed = false;
  Values inner;
  if (type.type_class == TypeClass::kRecord) {
    made.fields.clear();
    for (const Field& field : type.fields) {
      inner.clear();
      for (const json::value* value : values)
        if (value->is_object())
          if (const json::value* found = value->get_object().if_contains(field.name))
            inner.push_back(found);
      if (inner.empty()) continue;
      made.fields.push_back(field);
      made.fields.back().type = &narrowed(*field.type, inner, pool);
      changed = changed || made.fields.back().type != field.type;
    }
    changed = changed || made.fields.size() != type.fields.size();
  } else if (type.element != nullptr) {
    for (const json::value* value : values)
      if (type.type_class != TypeClass::kList)
        inner.push_back(value);
      else if (value->is_array())
        for (const json::value& element : value->get_array()) inner.push_back(&element);
    // An empty list says that there is nothing, not that nothing is compared.
    if (!inner.empty()) made.element = &narrowed(*type.element, inner, pool);
    changed = made.element != type.element;
  }
  if (!changed) return type;
  pool.push_back(std::move(made));
  return pool.back();
}

// The members of an answer, and nothing but these.
Record partial_record(json::object members, const Type& type, std::uint64_t line) {
  struct Held {
    Pool pool;
    std::shared_ptr<void> value;
  };
  const auto held = std::make_shared<Held>();
  json::value all = std::move(members);
  const Type& shown = narrowed(type, {&all}, held->pool);
  remove_absent(all);
  held->value = shown.made();
  JsonFault fault;
  if (!read_json(all, shown, held->value.get(), fault))
    throw Refusal{line, fault.field, fault.value, fault.problem};
  return {shown, std::shared_ptr<const void>(held, held->value.get())};
}

std::vector<std::string> names_of(const Type& type) {
  std::vector<std::string> names;
  for (const Field& field : type.fields) names.emplace_back(field.name);
  return names;
}

std::vector<std::string> known_codes() {
  std::vector<std::string> words;
  for (int code = 0; code <= static_cast<int>(Code::kThrew); ++code)
    if (static_cast<Code>(code) != Code::kOther)
      words.push_back(Error{.code = static_cast<Code>(code)}.code_text());
  words.emplace_back("other:REASON");
  return words;
}

const Field* field_named(const Type& type, std::string_view name) {
  const auto found = std::ranges::find(type.fields, name, &Field::name);
  return found != type.fields.end() ? &*found : nullptr;
}

}  // namespace

std::string list_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::vector<Tokens> statements_of(std::string_view text) {
  return Scanner(text).statements();
}

Record record_of(const json::object& members, const Type& type, std::uint64_t line) {
  JsonFault fault;
  Record record = read_record(members, type, fault);
  if (!record) throw Refusal{line, fault.field, fault.value, fault.problem};
  return record;
}

// ---- Reading ----

namespace {

// Elements with commas between them, up to `end`.
template <class Each>
void read_until(StatementReader& reader, std::string_view end, const Each& each) {
  if (reader.take(end)) return;
  do each();
  while (reader.take(","));
  if (!reader.take(end)) reader.refuse("", "is neither , nor " + std::string(end));
}

}  // namespace

void StatementReader::refuse(std::string_view field, const std::string& problem) const {
  const bool ended = at_end();
  const Token& last = ended ? tokens_.back() : tokens_[at_];
  throw Refusal{last.line, std::string(field), ended ? "end of the statement" : last.text, problem};
}

bool StatementReader::take(std::string_view word) {
  if (!at(word)) return false;
  ++at_;
  return true;
}

Token StatementReader::next(std::string_view wanted) {
  if (at_end()) refuse("", "must be followed by " + std::string(wanted));
  return tokens_[at_++];
}

std::string StatementReader::joined(std::string_view wanted) {
  Token token = next(wanted);
  while (!at_end() && tokens_[at_].begin == token.end && !at(",") && !at("|")) {
    token.text += tokens_[at_].text;
    token.end = tokens_[at_++].end;
  }
  return token.text;
}

void StatementReader::expect_end() const {
  if (!at_end()) refuse("", "is not expected here");
}

// Replaces a variable by its value.
void StatementReader::put_variable() {
  if (at_end() || tokens_[at_].kind != Token::Kind::kWord) return;
  const auto found = variables_.find(tokens_[at_].text);
  if (found == variables_.end()) return;
  Tokens value = found->second;
  for (Token& token : value) {
    token.line = tokens_[at_].line;
    token.begin = tokens_[at_].begin;
    token.end = tokens_[at_].end;
  }
  const auto here = tokens_.begin() + static_cast<std::ptrdiff_t>(at_);
  tokens_.insert(tokens_.erase(here), value.begin(), value.end());
}

std::int64_t StatementReader::integer() {
  return sum(0);
}

std::int64_t StatementReader::sum(std::size_t depth) {
  std::int64_t total = product(depth);
  while (at("+") || at("-")) {
    const bool plus = take("+");
    if (!plus) take("-");
    const std::int64_t more = product(depth);
    if (plus ? __builtin_add_overflow(total, more, &total)
             : __builtin_sub_overflow(total, more, &total))
      refuse("", "is after a sum beyond 64 bits");
  }
  return total;
}

std::int64_t StatementReader::product(std::size_t depth) {
  std::int64_t total = factor(depth);
  while (at("*") || at("/") || at("%")) {
    const std::string mark = next("").text;
    const std::int64_t more = factor(depth);
    if (mark == "*") {
      if (__builtin_mul_overflow(total, more, &total))
        refuse("", "is after a product beyond 64 bits");
    } else if (more <= 0) {
      refuse("", "is after a divisor that is not positive");
    } else {
      total = mark == "/" ? total / more : total % more;
    }
  }
  return total;
}

std::int64_t StatementReader::factor(std::size_t depth) {
  if (depth > kDeepest) refuse("", "has too many brackets around it");
  put_variable();
  if (take("(")) {
    const std::int64_t inner = sum(depth + 1);
    if (!take(")")) refuse("", "is not the expected )");
    return inner;
  }
  const bool negative = take("-");
  if (negative) put_variable();
  const bool word = names_ != nullptr && !at_end() && tokens_[at_].kind == Token::Kind::kWord;
  if (word) return negative ? -named(depth) : named(depth);
  if (at("(")) return -factor(depth + 1);
  if (at_end() || tokens_[at_].kind != Token::Kind::kNumber)
    refuse("", "is no integer and no loop variable");
  const std::string& digits = tokens_[at_].text;
  const bool hexadecimal = digits.starts_with("0x");
  const std::string text = (negative ? "-" : "") + digits.substr(hexadecimal ? 2 : 0);
  std::int64_t read = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), read,
                                   hexadecimal ? kHexadecimal : kDecimal);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size())
    refuse("", "is not a 64-bit integer");
  ++at_;
  return read;
}

// NAME, or NAME(ARGUMENT, ...).
std::int64_t StatementReader::named(std::size_t depth) {
  const std::string name = next("").text;
  std::vector<std::int64_t> arguments;
  if (take("(")) {
    do arguments.push_back(sum(depth + 1));
    while (take(","));
    if (!take(")")) refuse("", "is neither , nor )");
  }
  const auto value = names_->value(name, arguments);
  if (!value) {
    --at_;
    refuse("", "is after `" + name + "`, which has no value here");
  }
  return *value;
}

json::value StatementReader::number(const Type& type) {
  put_variable();
  const bool fraction = type.type_class != TypeClass::kInteger;
  const bool negative = at("-");
  const std::size_t first = at_ + (negative ? 1 : 0);
  if (first < tokens_.size()) {
    const Token& token = tokens_[first];
    if (fraction && (token.is("inf") || (token.is("nan") && !negative))) {
      at_ = first + 1;
      return json::value((negative ? "-" : "") + token.text);
    }
    boost::system::error_code failure;
    if (token.kind == Token::Kind::kNumber && !token.text.starts_with("0x")) {
      const json::value read = parse_json((negative ? "-" : "") + token.text, failure);
      const bool minus_zero = fraction && negative && !failure && read == json::value(0);
      if (!failure && (read.is_double() || read.is_uint64() || minus_zero)) {
        at_ = first + 1;
        return minus_zero ? json::value(-0.0) : read;
      }
    }
  }
  return integer();
}

json::value StatementReader::value(const Type& type, Missing missing) {
  put_variable();
  if (at_end()) refuse("", "must be followed by a value: " + std::string(type.value_type().word()));
  switch (type.type_class) {
    case TypeClass::kOptional:
      if (take("absent")) return absent_member();
      return value(*type.element, missing);
    case TypeClass::kNullable:
      if (take("null")) return nullptr;
      return value(*type.element, missing);
    case TypeClass::kBool:
      if (take("true")) return true;
      if (take("false")) return false;
      refuse("", "is neither true nor false");
    case TypeClass::kInteger:
    case TypeClass::kFloat:
    case TypeClass::kDouble:
      return number(type);
    case TypeClass::kString:
      if (tokens_[at_].kind != Token::Kind::kString) refuse("", "is no string in quotes");
      return json::value(next("").text);
    case TypeClass::kEnum:
      return json::value(next("").text);
    case TypeClass::kTensor:
      return tensor();
    case TypeClass::kList:
      return list(type, missing);
    case TypeClass::kRecord:
      return record(type, missing);
    case TypeClass::kCustom:
      return any_value(0);
  }
  return nullptr;
}

json::value StatementReader::list(const Type& type, Missing missing) {
  json::array out;
  if (tokens_[at_].kind == Token::Kind::kString &&
      type.element->type_class == TypeClass::kInteger) {
    for (const char c : next("").text)
      out.emplace_back(static_cast<std::int64_t>(static_cast<unsigned char>(c)));
    return out;
  }
  if (!take("[")) refuse("", "is no list in [ ]");
  read_until(*this, "]", [&] { add_elements(*type.element, missing, out); });
  return out;
}

// One element, `FIRST to LAST`, or `COUNT times ELEMENT`.
void StatementReader::add_elements(const Type& type, Missing missing, json::array& out) {
  // A count of lists or records is no element.
  const bool counted = at_ + 1 < tokens_.size() && tokens_[at_ + 1].is("times");
  json::value first = counted ? json::value(integer()) : value(type, missing);
  const bool whole = first.is_int64();
  const auto check = [&](std::int64_t more) {
    if (more < 0 || more > kMostElements - static_cast<std::int64_t>(out.size()))
      refuse("", "is after more than " + std::to_string(kMostElements) + " elements");
  };
  if (whole && take("to")) {
    const std::int64_t from = first.get_int64();
    const std::int64_t last = integer();
    if (last < from) refuse("", "is after a range that ends before it begins");
    if (from < -kMostElements || last > kMostElements) check(kMostElements + 1);
    check(last - from + 1);
    for (std::int64_t each = from; each <= last; ++each) out.emplace_back(each);
  } else if (whole && take("times")) {
    check(first.get_int64());
    const json::value repeated = value(type, missing);
    out.insert(out.end(), static_cast<std::size_t>(first.get_int64()), repeated);
  } else {
    check(1);
    out.push_back(std::move(first));
  }
}

json::value StatementReader::record(const Type& type, Missing missing) {
  if (!take("{")) refuse("", "is no record in { }");
  json::object out;
  if (missing == Missing::kDefault) out = write_json(type, type.made().get()).as_object();
  if (take("}")) return out;
  add_members(type, missing, out);
  if (!take("}")) refuse("", "is neither , nor }");
  return out;
}

void StatementReader::add_members(const Type& type, Missing missing, json::object& out) {
  std::set<std::string> seen;
  do {
    const Token name = next("a member: " + list_text(names_of(type)));
    const Field* field = name.kind == Token::Kind::kWord ? field_named(type, name.text) : nullptr;
    --at_;
    if (field == nullptr) refuse("", "is none of the members " + list_text(names_of(type)));
    if (!seen.insert(name.text).second) refuse("", "is there twice");
    ++at_;
    json::value read = value(*field->type, missing);
    if (missing == Missing::kDefault && read == absent_member())
      out.erase(name.text);
    else
      out[name.text] = std::move(read);
  } while (take(","));
}

json::object StatementReader::members(const Type& type, json::object base) {
  if (!at_end()) add_members(type, Missing::kDefault, base);
  return base;
}

std::vector<std::int64_t> StatementReader::shape() {
  std::vector<std::int64_t> sizes;
  if (!take("[")) refuse("shape", "is no list of sizes in [ ]");
  read_until(*this, "]", [&] { sizes.push_back(integer()); });
  if (element_count(sizes).value_or(kMostElements + 1) > kMostElements)
    refuse("shape", "is after a shape of more than " + std::to_string(kMostElements) + " elements");
  return sizes;
}

// Nested lists; all of one depth are equally long.
void StatementReader::add_rows(std::size_t depth, std::vector<std::int64_t>& shape,
                               json::array& data) {
  static const Type& element = type_of<float>();
  if (depth > kDeepest) refuse("", "has too many brackets around it");
  if (!take("[")) refuse("", "is no list in [ ]");
  const bool known = depth < shape.size();
  if (!known) shape.push_back(0);
  const std::size_t before = data.size();
  std::int64_t rows = 0;
  read_until(*this, "]", [&] {
    if (at("[")) {
      add_rows(depth + 1, shape, data);
      ++rows;
      return;
    }
    if (depth + 1 < shape.size()) refuse("", "is no list in [ ]");
    add_elements(element, Missing::kDefault, data);
    rows = static_cast<std::int64_t>(data.size() - before);
  });
  if (known && shape[depth] != rows)
    refuse("", "is after a row of " + std::to_string(rows) + " where others have " +
                   std::to_string(shape[depth]));
  shape[depth] = rows;
}

json::value StatementReader::tensor() {
  json::object out;
  if (dtype_of_name(tokens_[at_].text)) out["dtype"] = next("").text;
  if (take("counting") || take("filled")) {
    const bool counts = tokens_[at_ - 1].is("counting");
    const auto sizes = shape();
    if (!take(counts ? "from" : "with"))
      refuse("", counts ? "is not the expected `from`" : "is not the expected `with`");
    const json::value first = number(type_of<float>());
    json::array data(static_cast<std::size_t>(*element_count(sizes)), first);
    if (counts)
      for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = number_to_json(first.to_number<double>() + static_cast<double>(i));
    out["shape"] = json::array(sizes.begin(), sizes.end());
    out["data"] = std::move(data);
    return out;
  }
  const bool bits = take("bits");
  json::array data;
  std::vector<std::int64_t> sizes;
  if (!at("["))
    refuse("",
           "is no tensor: a dtype or nothing, then nested lists, `bits` and nested lists, "
           "`counting SHAPE from FIRST` or `filled SHAPE with VALUE`");
  add_rows(0, sizes, data);
  out["shape"] = json::array(sizes.begin(), sizes.end());
  out[bits ? "bits" : "data"] = std::move(data);
  return out;
}

// Of a value with a text form of its own.
json::value StatementReader::any_value(std::size_t depth) {
  if (depth > kDeepest) refuse("", "has too many brackets around it");
  put_variable();
  if (at_end()) refuse("", "must be followed by a value");
  if (take("[")) {
    json::array out;
    read_until(*this, "]", [&] { out.push_back(any_value(depth + 1)); });
    return out;
  }
  if (take("{")) {
    json::object out;
    read_until(*this, "}", [&] {
      const std::string name = next("a name").text;
      out[name] = any_value(depth + 1);
    });
    return out;
  }
  if (take("true")) return true;
  if (take("false")) return false;
  if (take("null")) return nullptr;
  if (tokens_[at_].kind == Token::Kind::kString) return json::value(next("").text);
  return number(type_of<double>());
}

Op StatementReader::operation(const CacheKind& kind) {
  std::vector<std::string> names;
  for (const OpKind* each : kind.operations) names.emplace_back(each->name);
  const OpKind* found =
      tokens_[at_].kind == Token::Kind::kWord ? kind.operation(tokens_[at_].text) : nullptr;
  if (found == nullptr) refuse("", "is no operation of " + kind.name() + ": " + list_text(names));
  const std::uint64_t line = next("").line;
  const Type& type = *found->arguments;
  json::object arguments = write_json(type, type.made().get()).as_object();
  if (!at_end() && !at("->")) add_members(type, Missing::kDefault, arguments);
  return {*found, record_of(arguments, type, line)};
}

Observation StatementReader::observation(const OpKind& kind) {
  const Type& type = *kind.returns;
  const auto ends = [&](std::size_t at) {
    return at >= tokens_.size() || tokens_[at].is("|") || tokens_[at].is(",");
  };
  const std::uint64_t line = tokens_[at_].line;
  Observation seen;
  if (ends(at_ + 1) && take("ok")) return seen;  // not a member of that name
  if (take("panic")) {
    seen.error = fail(Code::kPrecondition);
    if (!at_end() && tokens_[at_].kind == Token::Kind::kString) seen.error->detail = next("").text;
    return seen;
  }
  const bool names_member = field_named(type, tokens_[at_].text) != nullptr && !ends(at_ + 1);
  if (!names_member) {
    const std::size_t begin = at_;
    const std::string code = joined("an answer");
    seen.error = error_of_code(code);
    if (seen.error->code_text() != code) {
      at_ = begin;
      refuse("", "is no answer of `" + std::string(kind.name) + "`: ok, its members (" +
                     list_text(names_of(type)) + "), or an error: " + list_text(known_codes()));
    }
    if (!take(",")) return seen;
  }
  json::object members;
  add_members(type, Missing::kIgnored, members);
  seen.returns = partial_record(std::move(members), type, line);
  return seen;
}

Answer StatementReader::answer(const OpKind& kind) {
  if (at_end()) refuse("", "must be followed by an answer");
  Answer read{.begin = tokens_[at_].begin};
  read.open = take("?");
  if (!read.open) read.wanted = observation(kind);
  read.end = tokens_[at_ - 1].end;
  return read;
}

Answers StatementReader::answers(const OpKind& kind) {
  Answers read{.end = tokens_[at_ - 1].end};
  if (at_end()) {
    read.of[0] = read.of[1] = Answer();
    return read;
  }
  if (!take("->")) refuse("", "is neither , nor ->");
  std::optional<Answer> other;
  do {
    if (at_end()) refuse("", "must be followed by an answer");
    if (read.begin == 0) read.begin = tokens_[at_].begin;
    const auto profile = std::ranges::find(kProfileWords, tokens_[at_].text);
    const bool named =
        profile != kProfileWords.end() && at_ + 1 < tokens_.size() && tokens_[at_ + 1].is(":");
    auto& place =
        named ? read.of[static_cast<std::size_t>(profile - kProfileWords.begin())] : other;
    if (place)
      refuse("", named ? "has two answers"
                       : "is a second answer for both profiles: write "
                         "`original:` or `documented:` in front of one");
    if (named) {
      read.named.at(static_cast<std::size_t>(profile - kProfileWords.begin())) = true;
      at_ += 2;
    }
    place = answer(kind);
  } while (take("|"));
  read.end = tokens_[at_ - 1].end;
  expect_end();
  if (other && read.of[0] && read.of[1])
    throw Refusal{tokens_.front().line, "", "->", "has two answers for one profile"};
  for (auto& place : read.of)
    if (!place) place = other;
  return read;
}

std::vector<Tokens> StatementReader::loop_values() {
  std::vector<Tokens> values;
  while (!at_end()) {
    put_variable();
    const std::size_t begin = at_;
    std::size_t depth = 0;
    if (at("-")) ++at_;
    do {
      const Token token = next("a closing bracket");
      if (token.is("[") || token.is("(") || token.is("{")) ++depth;
      if ((token.is("]") || token.is(")") || token.is("}")) && depth > 0) --depth;
    } while (depth > 0);
    const auto from = tokens_.begin() + static_cast<std::ptrdiff_t>(begin);
    values.emplace_back(from, tokens_.begin() + static_cast<std::ptrdiff_t>(at_));
    if (take("to")) {
      at_ = begin;
      const std::int64_t first = integer();
      take("to");
      const std::int64_t last = integer();
      if (last < first || first < -kMostElements || last - first >= kMostElements)
        refuse("", "is after a range that is empty or too long");
      values.pop_back();
      for (std::int64_t each = first; each <= last; ++each) {
        Tokens number{{Token::Kind::kNumber, std::to_string(each < 0 ? -each : each), 0, 0, 0}};
        if (each < 0) number.insert(number.begin(), {Token::Kind::kMark, "-", 0, 0, 0});
        values.push_back(std::move(number));
      }
    }
    take(",");
  }
  return values;
}

// ---- Writing ----

namespace {

constexpr std::size_t kLongRun = 5;

bool is_whole(double value) {
  return std::abs(value) < static_cast<double>(kMostElements) && value == std::trunc(value) &&
         !(value == 0 && std::signbit(value));
}

/// Elements of a list or a row, as numbers and as text.
struct Elements {
  std::size_t count;
  std::function<double(std::size_t)> value;  ///< NaN: in no run
  std::function<std::string(std::size_t)> text;
};

// How many elements from `begin` on are each by `step` larger than the one before.
std::size_t run_length(const Elements& elements, std::size_t begin, double step) {
  const double first = elements.value(begin);
  std::size_t length = 1;
  while (begin + length < elements.count && is_whole(first) &&
         elements.value(begin + length) == first + step * static_cast<double>(length))
    ++length;
  return length;
}

// "1,2,5 to 40,8 times 0"
std::string run_text(const Elements& elements) {
  std::string all;
  for (std::size_t i = 0; i < elements.count;) {
    const std::size_t equal = run_length(elements, i, 0);
    const std::size_t counting = run_length(elements, i, 1);
    all += all.empty() ? "" : ",";
    if (equal >= kLongRun) all += std::to_string(equal) + " times ";
    all += elements.text(i);
    if (counting >= kLongRun) all += " to " + elements.text(i + counting - 1);
    i += std::max(equal >= kLongRun ? equal : 1, counting >= kLongRun ? counting : 1);
  }
  return "[" + all + "]";
}

// The shortest text that reads as this number.
template <class Number>
std::string number_text(Number value) {
  constexpr std::size_t kLongest = 32;
  std::array<char, kLongest> text{};
  const auto written = [&](auto number) {
    return std::string(text.data(),
                       std::to_chars(text.data(), text.data() + text.size(), number).ptr);
  };
  std::string shortest = written(value);
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : shortest;
  boost::system::error_code failure;
  const json::value read = parse_json(shortest, failure);
  if (!failure && static_cast<Number>(read.to_number<double>()) == value) return shortest;
  return written(double{value});
}

// The elements of a tensor in nested brackets.
std::string rows_text(const Tensor& tensor, const Elements& elements, std::size_t axis,
                      std::size_t begin) {
  std::size_t each = 1;
  for (std::size_t inner = axis + 1; inner < tensor.shape.size(); ++inner)
    each *= static_cast<std::size_t>(tensor.shape[inner]);
  const auto size = static_cast<std::size_t>(tensor.shape[axis]);
  if (axis + 1 == tensor.shape.size())
    return run_text({size, [&](std::size_t i) { return elements.value(begin + i); },
                     [&](std::size_t i) { return elements.text(begin + i); }});
  std::string text;
  for (std::size_t row = 0; row < size; ++row)
    text += (row == 0 ? "" : ",") + rows_text(tensor, elements, axis + 1, begin + row * each);
  return "[" + text + "]";
}

bool reads_back(const std::string& text, const Tensor& tensor) {
  const Variables none;
  StatementReader reader(statements_of(text).front(), none);
  Tensor read;
  JsonFault fault;
  return read_json(reader.value(type_of<Tensor>(), StatementReader::Missing::kDefault), read,
                   fault) &&
         read == tensor;
}

std::string tensor_text(const Tensor& tensor) {
  const std::string type =
      tensor.dtype == DType::kF32 ? "" : std::string(dtype_name(tensor.dtype)) + " ";
  const std::string shape = json::serialize(json::array(tensor.shape.begin(), tensor.shape.end()));
  const Elements elements{static_cast<std::size_t>(tensor.elements()),
                          [&](std::size_t i) { return element_value(tensor, i); },
                          [&](std::size_t i) {
                            const double value = element_value(tensor, i);
                            return is_whole(tensor.dtype) ? number_text(value)
                                                          : number_text(static_cast<float>(value));
                          }};
  const bool rows = tensor.shape.size() != 1;
  if (elements.count == 0 && rows) return type + "filled " + shape + " with 0";
  if (rows && run_length(elements, 0, 0) == elements.count)
    return type + "filled " + shape + " with " + elements.text(0);
  if (rows && run_length(elements, 0, 1) == elements.count)
    return type + "counting " + shape + " from " + elements.text(0);
  std::string text = type + rows_text(tensor, elements, 0, 0);
  if (reads_back(text, tensor)) return text;
  const Elements bits{elements.count, [](std::size_t /*i*/) { return std::nan(""); },
                      [&](std::size_t i) { return hexadecimal(element_bits(tensor, i)); }};
  return type + "bits " + rows_text(tensor, bits, 0, 0);
}

// As any_value reads it.
std::string any_text(const json::value& value) {
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : ",") + one; };
  if (value.is_array()) {
    for (const json::value& element : value.get_array()) add(any_text(element));
    return "[" + text + "]";
  }
  if (value.is_object()) {
    for (const auto& member : value.get_object())
      add(json::serialize(json::value(member.key())) + " " + any_text(member.value()));
    return "{" + text + "}";
  }
  return json::serialize(value);
}

bool is_absent(const Field& field, const void* record) {
  return field.type->is_optional() && field.type->held_by(field.of(record)) == nullptr;
}

bool is_default(const Field& field, const void* record, const void* fresh) {
  return !first_difference(*field.type, field.of(fresh), field.of(record));
}

using Missing = StatementReader::Missing;

std::string value_text(const Type& type, const void* value, Missing missing);

std::string member_text(const Field& field, const void* record, Missing missing) {
  return std::string(field.name) + " " +
         (is_absent(field, record) ? "absent" : value_text(*field.type, field.of(record), missing));
}

std::string record_text(const Type& type, const void* value, Missing missing) {
  const auto fresh = type.made();
  std::string text;
  for (const Field& field : type.fields)
    if (missing == Missing::kDefault ? !is_default(field, value, fresh.get())
                                     : !is_absent(field, value))
      text += (text.empty() ? "" : ", ") + member_text(field, value, missing);
  return "{" + text + "}";
}

std::string list_value_text(const Type& type, const void* value, Missing missing) {
  const std::size_t length = type.length(value);
  const auto at = [&](std::size_t i) { return type.element_at(value, i); };
  const auto text_at = [&](std::size_t i) { return value_text(*type.element, at(i), missing); };
  if (type.element->is_number()) {
    const bool tokens = type.element->type_class == TypeClass::kInteger &&
                        type.element->size == sizeof(std::int32_t);
    std::string letters;
    for (std::size_t i = 0; i < length && tokens; ++i) {
      const std::int64_t token = integer_at(*type.element, at(i));
      if (token >= 'a' && token <= 'z') letters += static_cast<char>(token);
    }
    if (length > 0 && letters.size() == length) return json::serialize(json::value(letters));
    return run_text({length,
                     [&](std::size_t i) -> double {
                       if (type.element->type_class == TypeClass::kInteger)
                         return static_cast<double>(integer_at(*type.element, at(i)));
                       return type.element->type_class == TypeClass::kFloat
                                  ? double{detail::to<float>(at(i))}
                                  : detail::to<double>(at(i));
                     },
                     text_at});
  }
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += (i == 0 ? "" : ",") + text_at(i);
  return "[" + text + "]";
}

std::string value_text(const Type& type, const void* value, Missing missing) {
  switch (type.type_class) {
    case TypeClass::kOptional:
    case TypeClass::kNullable: {
      const void* held = type.held_by(value);
      return held != nullptr ? value_text(*type.element, held, missing)
                             : std::string(type.is_optional() ? "absent" : "null");
    }
    case TypeClass::kFloat:
      return number_text(detail::to<float>(value));
    case TypeClass::kDouble:
      return number_text(detail::to<double>(value));
    case TypeClass::kTensor:
      return tensor_text(detail::to<Tensor>(value));
    case TypeClass::kRecord:
      return record_text(type, value, missing);
    case TypeClass::kList:
      return list_value_text(type, value, missing);
    case TypeClass::kEnum:
      return std::string(write_json(type, value).as_string());
    default:
      return any_text(write_json(type, value));
  }
}

}  // namespace

std::string operation_text(const Op& op) {
  const Type& type = op.arguments().type();
  const void* value = op.arguments().get();
  const auto fresh = type.made();
  std::size_t last = 0;
  for (std::size_t i = 0; i < type.fields.size(); ++i)
    if (!is_default(type.fields[i], value, fresh.get())) last = i;
  std::string text;
  for (std::size_t i = 0; i < type.fields.size() && i <= last; ++i)
    if (!is_absent(type.fields[i], value) || !is_default(type.fields[i], value, fresh.get()))
      text += (text.empty() ? " " : ", ") + member_text(type.fields[i], value, Missing::kDefault);
  return std::string(op.kind().name) + text;
}

std::string answer_text(const Observation& seen) {
  std::string text;
  if (seen.failed_with(Code::kPrecondition) && !seen.error->detail.empty())
    return "panic " + json::serialize(json::value(seen.error->detail));
  if (seen.error) text = seen.error->code_text();
  if (text.find(' ') != std::string::npos) {  // words after `other:`
    const std::size_t reason = text.find(':') + 1;
    text = text.substr(0, reason) + json::serialize(json::value(text.substr(reason)));
  }
  if (!seen.returns) return text;
  for (const Field& field : seen.returns.type().fields)
    text += (text.empty() ? "" : ", ") + member_text(field, seen.returns.get(), Missing::kIgnored);
  return text;
}

std::string config_words(const Record& config) {
  if (!config) return {};
  const std::string text = record_text(config.type(), config.get(), Missing::kDefault);
  return text.substr(1, text.size() - 2);
}

Observation narrowed_like(const Observation& seen, const Observation& shown) {
  if (shown.error && !seen.error) return seen;
  Observation narrow{.error = seen.error};
  if (!seen.returns || !shown.returns) return narrow;
  const auto both = std::make_shared<std::pair<Record, Record>>(seen.returns, shown.returns);
  narrow.returns = {both->second.type(), std::shared_ptr<const void>(both, both->first.get())};
  return narrow;
}

}  // namespace kvo::traces
