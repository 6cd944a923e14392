// properties/replay/prompt_tokens.hpp: the tokens of a trace's prompts, which say lengths only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "traces/formats/request.hpp"

namespace kvo::replay {

using Tokens = std::vector<std::int32_t>;

/// Gives prompts tokens, so that two begin alike exactly as far as their block ids do: a block has
/// the tokens of its id, whatever comes before it; everything else has tokens that come once. Also
/// says how much of a prompt is known already, by ids alone: no cache can find more.
class PromptTokens {
 public:
  /// `requests`: those that prompts are asked of; all lengths are divided by `scale`. A block has
  /// as many tokens as the longest one in them.
  PromptTokens(std::span<const traces::Request> requests, std::int64_t scale);

  /// Tokens of a block, divided by the scale; 1 without ids.
  [[nodiscard]] std::int64_t block() const { return block_; }
  [[nodiscard]] Tokens prompt(const traces::Request& request);
  /// Tokens that come once.
  [[nodiscard]] Tokens fresh(std::int64_t count);

  /// How many tokens of the prompt, from the first on, stood there in a prompt that was learnt.
  [[nodiscard]] std::int64_t known(const traces::Request& request) const;
  /// The first `tokens` of the prompt are known from now on.
  void learn(const traces::Request& request, std::int64_t tokens);

 private:
  /// Blocks by what stands before them: two beginnings part where their nodes do.
  using Node = std::size_t;

  [[nodiscard]] std::int64_t length(const traces::Request& request) const;
  std::int32_t next();

  std::int64_t scale_;
  std::int64_t block_ = 1;  ///< tokens of a block
  std::uint64_t last_ = 0;  ///< token given last
  std::map<std::uint64_t, Tokens> blocks_ = {};
  std::map<std::pair<Node, std::uint64_t>, Node> nodes_ = {};
  std::vector<std::int64_t> known_{0};  ///< by node: its tokens that are known
};

}  // namespace kvo::replay
