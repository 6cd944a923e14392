// tools/probe/answers.hpp: compares what an engine generated from the probe with what must follow.
//
// File     JSON Lines, plain or gzip. Each line is an object with two lists of tokens: `prompt`,
// and
//          `continuation`, which the engine generated. Other members are ignored, and so are blank
//          lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "reference/probe/tables.hpp"
#include "traces/io/text_source.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::tools {

/// Longest line, in bytes: 32,768 tokens with several blanks each.
inline constexpr std::size_t kMostAnswerBytes = std::size_t{1} << 20U;

/// A generated token that is not the right one.
struct WrongToken {
  std::uint64_t line;  ///< counted from 1
  std::size_t index;   ///< in the continuation, counted from 0
  probe::Token want;
  probe::Token got;
};

/// How many answers are right.
struct AnswerCounts {
  std::uint64_t prompts = 0;
  std::uint64_t right_prompts = 0;  ///< with no wrong token
  std::uint64_t tokens = 0;         ///< of continuations
  std::uint64_t right_tokens = 0;
  std::optional<WrongToken> first;
};

/// Reads a file and compares each continuation with Rows::generate after the same prompt.
/// Errors  of TextSource; a line that is no JSON object; a member that is missing, no list, empty,
///         or too long for the model; a token that is no integer from 0 to 4415; a prompt that does
///         not begin with token 1 or 3; with a window, a position without token 1 or 3 inside of
///         its window. Each names file, line, member, value and what is allowed.
[[nodiscard]] traces::TraceResult<AnswerCounts> compare_answers(traces::TextSource source,
                                                                const probe::Tables& tables);

}  // namespace kvo::tools
