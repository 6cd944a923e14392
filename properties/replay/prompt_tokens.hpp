// properties/replay/prompt_tokens.hpp: the tokens of a trace's prompts, which say lengths only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "properties/replay/lowering.hpp"
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

/// Counts hits by request, by block of the trace and by token, beside what a cache would have that
/// serves the trace from its first request on and never forgets. That bound follows from block ids
/// alone: leading blocks of a prompt that stood in an earlier one, as `trace info` counts them. It
/// is the same whatever the case, so that the sum over all cases is the trace's.
class PrefixHits {
 public:
  /// `block`: tokens of a block of the trace, at the scale of the input.
  PrefixHits(const LoweringInput& input, std::int64_t block);

  /// The request of that index in the input was looked up, and `tokens` of its prompt were served.
  /// Only the first time counts.
  void count(std::size_t request, std::int64_t tokens);

  /// Of those that were counted; each name begins with `name`.
  [[nodiscard]] std::vector<Figure> figures(const std::string& name) const;

 private:
  /// What is known of a request.
  struct Prompt {
    std::int64_t tokens = 0;
    std::int64_t blocks = 0;
    std::int64_t known = 0;  ///< leading blocks that stood in an earlier request
    bool counted = false;
  };
  /// Requests that hit, blocks and tokens.
  struct Sums {
    std::int64_t requests = 0;
    std::int64_t blocks = 0;
    std::int64_t tokens = 0;

    void add(std::int64_t more_blocks, std::int64_t more_tokens);
  };

  std::int64_t block_;
  std::vector<Prompt> prompts_;
  std::int64_t requests_ = 0;
  std::int64_t blocks_ = 0;
  std::int64_t tokens_ = 0;
  Sums hit_;
  Sums best_;
};

}  // namespace kvo::replay
