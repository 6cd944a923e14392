// properties/replay/prefix_hits.hpp: how much of the prompts of a case was served by what is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "properties/replay/lowering.hpp"

namespace kvo::replay {

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
