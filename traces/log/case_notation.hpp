// traces/log/case_notation.hpp: operations, configs and answers in the notation of rule cases.
//
// Readers and writers of values for traces/log/cases.cpp. The notation: docs/cases.md.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "reference/contract/subject/subject.hpp"

namespace kvo::traces {

/// A word, number, string or mark of a file.
struct Token {
  enum class Kind : std::uint8_t { kWord, kNumber, kString, kMark };
  Kind kind = Kind::kMark;
  std::string text = {};   ///< of a string: without quotes and escapes
  std::uint64_t line = 0;  ///< counted from 1
  std::size_t begin = 0;   ///< bytes of the file
  std::size_t end = 0;

  /// Whether it is that word or mark.
  [[nodiscard]] bool is(std::string_view word) const {
    return kind != Kind::kString && text == word;
  }
};
using Tokens = std::vector<Token>;

/// Why a text is refused. Thrown by the readers below; read_cases returns it as a TraceError.
struct Refusal {
  std::uint64_t line = 0;
  std::string field = {};
  std::string value = {};
  std::string problem = {};
};

/// Words for a message: "a, b, c".
[[nodiscard]] std::string list_text(const std::vector<std::string>& words);

/// The statements of a text. A statement ends with its line or a semicolon. It continues in the
/// next line while a bracket is open, and after `,`, `->` or `|`.
/// Throws   Refusal: a string without an end, a byte that begins nothing
[[nodiscard]] std::vector<Tokens> statements_of(std::string_view text);

/// Loop variables, by name: the tokens that replace them.
using Variables = std::map<std::string, Tokens, std::less<>>;

/// Values of words that an expression names, where these are not in the text.
class Names {
 public:
  virtual ~Names() = default;
  /// Of `name`, or of `name(arguments)`; nothing where there is no such value.
  [[nodiscard]] virtual std::optional<std::int64_t> value(
      std::string_view name, const std::vector<std::int64_t>& arguments) const = 0;
};

/// What an operation must return in one profile.
struct Answer {
  Observation wanted = {};  ///< no returns: only the error, or its absence, counts
  bool open = false;        ///< `?`: not written yet
  std::size_t begin = 0;    ///< bytes of the file, without the name of the profile
  std::size_t end = 0;
};
/// The same in each profile; absent where the statement says nothing of it.
struct Answers {
  std::array<std::optional<Answer>, 2> of = {};  ///< by profile
  std::array<bool, 2> named = {};                ///< whether it has `original:` or `documented:`
  std::size_t begin = 0;                         ///< after `->`; 0: there is no answer
  std::size_t end = 0;                           ///< of the statement
};

/// Reads one statement from left to right. Its methods throw Refusal.
class StatementReader {
 public:
  StatementReader(Tokens tokens, const Variables& variables, const Names* names = nullptr)
      : tokens_(std::move(tokens)), variables_(variables), names_(names) {}

  [[nodiscard]] bool at_end() const { return at_ >= tokens_.size(); }
  [[nodiscard]] bool at(std::string_view word) const { return !at_end() && tokens_[at_].is(word); }
  /// Passes over that word or mark, if it is next.
  bool take(std::string_view word);
  /// The next token. `wanted` says what is missing at the end.
  Token next(std::string_view wanted);
  /// The next tokens without blanks between them, as one text: "PX-2", "prefix.blocks".
  std::string joined(std::string_view wanted);
  /// Refuses anything more.
  void expect_end() const;

  /// Members as "name value, name value" over the values of `base`, which has all others.
  boost::json::object members(const Type& type, boost::json::object base);
  /// The operation of a statement.
  Op operation(const CacheKind& kind);
  /// What follows it.
  Answers answers(const OpKind& kind);
  /// An integer, which may be computed from others and from variables.
  std::int64_t integer();
  /// The values of a loop: single tokens, groups in brackets, ranges.
  std::vector<Tokens> loop_values();

  /// What becomes of members of a record that are not named.
  enum class Missing : std::uint8_t {
    kDefault,  ///< they have their default: in arguments
    kIgnored,  ///< they are not compared: in answers
  };
  /// A value of that type, as logs write it.
  boost::json::value value(const Type& type, Missing missing);

  [[noreturn]] void refuse(std::string_view field, const std::string& problem) const;

 private:
  void put_variable();
  boost::json::value list(const Type& type, Missing missing);
  boost::json::value record(const Type& type, Missing missing);
  void add_members(const Type& type, Missing missing, boost::json::object& out);
  void add_elements(const Type& type, Missing missing, boost::json::array& out);
  boost::json::value number(const Type& type);
  boost::json::value tensor();
  void add_rows(std::size_t depth, std::vector<std::int64_t>& shape, boost::json::array& data);
  boost::json::value any_value(std::size_t depth);
  std::vector<std::int64_t> shape();
  Answer answer(const OpKind& kind);
  Observation observation(const OpKind& kind);
  std::int64_t sum(std::size_t depth);
  std::int64_t product(std::size_t depth);
  std::int64_t factor(std::size_t depth);
  std::int64_t named(std::size_t depth);

  Tokens tokens_;
  const Variables& variables_;
  const Names* names_;
  std::size_t at_ = 0;
};

/// A record of `type` from members. Throws Refusal with that line.
[[nodiscard]] Record record_of(const boost::json::object& members, const Type& type,
                               std::uint64_t line);

/// "allocate request 0, tokens 8": arguments up to the last that is not its default.
[[nodiscard]] std::string operation_text(const Op& op);
/// "keys [0,1]", "precondition"; empty where nothing is returned and nothing failed.
[[nodiscard]] std::string answer_text(const Observation& seen);
/// The members of a config that are not their default.
[[nodiscard]] std::string config_words(const Record& config);

/// The observation, with the members of `shown` alone; all of them where `shown` is an error.
[[nodiscard]] Observation narrowed_like(const Observation& seen, const Observation& shown);

}  // namespace kvo::traces
