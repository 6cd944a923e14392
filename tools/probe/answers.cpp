#include "tools/probe/answers.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "reference/contract/describe/parse_json.hpp"
#include "reference/probe/rows.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using traces::error_at;
using traces::Place;
using traces::TraceResult;

constexpr std::string_view kPrompt = "prompt";
constexpr std::string_view kContinuation = "continuation";

TraceResult<std::vector<probe::Token>> tokens_of(Place place, const json::object& line,
                                                 std::string_view member) {
  const json::value* value = line.if_contains(member);
  if (value == nullptr) return error_at(place, member, {}, "is missing: a list of tokens");
  const json::array* list = value->if_array();
  if (list == nullptr)
    return error_at(place, member, json::serialize(*value), "is no list of tokens");
  if (list->empty() || list->size() > probe::Shape::kPositions)
    return error_at(place, member, fmt::format("{} tokens", list->size()),
                    fmt::format("1 to {} are allowed", probe::Shape::kPositions));
  std::vector<probe::Token> tokens;
  for (const json::value& token : *list) {
    if (!token.is_int64() || token.get_int64() < 0 ||
        token.get_int64() >= std::int64_t{probe::Shape::kVocabulary})
      return error_at(place, fmt::format("{}[{}]", member, tokens.size()), json::serialize(token),
                      fmt::format("is no integer from 0 to {}", probe::Shape::kVocabulary - 1));
    tokens.push_back(static_cast<probe::Token>(token.get_int64()));
  }
  return tokens;
}

// Without a sink the model averages all rows, and no token is the right one.
TraceResult<void> check_sinks(Place place, const std::vector<probe::Token>& prompt,
                              std::size_t generated, const probe::Tables& tables) {
  const std::string sinks = fmt::format("token {} or {}", probe::kBegin, probe::kSink);
  if (!probe::is_sink(prompt.front()))
    return error_at(place, "prompt[0]", std::to_string(prompt.front()), "must be " + sinks);
  if (!tables.shape().window) return {};
  const std::size_t window = *tables.shape().window;
  std::size_t last = 0;
  // The model reads all tokens but the last generated one.
  for (std::size_t at = 0; at + 1 < prompt.size() + generated; ++at) {
    if (at < prompt.size() && probe::is_sink(prompt[at])) last = at;
    if (at - last >= window)
      return error_at(place, fmt::format("position {}", at), {},
                      fmt::format("needs {} among the last {} tokens", sinks, window));
  }
  return {};
}

struct AnswerLine {
  std::vector<probe::Token> prompt;
  std::vector<probe::Token> continuation;
};

TraceResult<AnswerLine> read_answer(Place place, std::string_view text,
                                    const probe::Tables& tables) {
  boost::system::error_code failure;
  const json::value parsed = parse_json(text, failure);
  if (failure || !parsed.is_object())
    return error_at(place, {}, text, "is no JSON object with prompt and continuation");
  auto prompt = tokens_of(place, parsed.get_object(), kPrompt);
  if (!prompt) return prompt.error();
  auto continuation = tokens_of(place, parsed.get_object(), kContinuation);
  if (!continuation) return continuation.error();
  if (const std::size_t all = prompt->size() + continuation->size(); all > probe::Shape::kPositions)
    return error_at(place, kContinuation, fmt::format("{} tokens with the prompt", all),
                    fmt::format("{} at most", probe::Shape::kPositions));
  if (const auto checked = check_sinks(place, *prompt, continuation->size(), tables); !checked)
    return checked.error();
  return AnswerLine{std::move(*prompt), std::move(*continuation)};
}

void compare_answer(std::uint64_t line, const AnswerLine& answer, const probe::Tables& tables,
                    AnswerCounts& counts) {
  probe::Rows rows(tables);
  rows.extend(answer.prompt);
  const std::vector<probe::Token> want = rows.generate(answer.continuation.size());
  bool right = true;
  for (std::size_t index = 0; index < want.size(); ++index) {
    const probe::Token got = answer.continuation[index];
    if (got == want[index]) {
      ++counts.right_tokens;
      continue;
    }
    right = false;
    if (!counts.first) counts.first = {line, index, want[index], got};
  }
  ++counts.prompts;
  counts.right_prompts += right ? 1 : 0;
  counts.tokens += want.size();
}

}  // namespace

TraceResult<AnswerCounts> compare_answers(traces::TextSource source, const probe::Tables& tables) {
  AnswerCounts counts;
  while (true) {
    const auto line = source.next_line();
    if (!line) return line.error();
    if (!*line) return counts;
    if ((*line)->find_first_not_of(" \t") == std::string_view::npos) continue;
    const auto answer = read_answer(source.place(), **line, tables);
    if (!answer) return answer.error();
    compare_answer(source.line_number(), *answer, tables, counts);
  }
}

}  // namespace kvo::tools
