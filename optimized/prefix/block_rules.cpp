#include "optimized/prefix/block_rules.hpp"

#include <algorithm>
#include <cmath>

namespace kvo::optimized {

std::int64_t BlockRules::admitted(std::int64_t blocks) const {
  const std::int64_t size = options_.block_size;
  switch (options_.attention) {
    case prefix::Attention::kSlidingWindow:
      return std::min(blocks, ceil_of(std::min(options_.window - 1 + options_.max_in_flight,
                                               options_.max_model_len),
                                      size) +
                                  1);
    case prefix::Attention::kChunkedLocal:
      return std::min(
          blocks,
          ceil_of(std::min(options_.chunk + options_.max_in_flight, options_.max_model_len), size));
    default:
      return blocks;
  }
}

std::int64_t BlockRules::watermark() const {
  return static_cast<std::int64_t>(
      std::floor(options_.watermark * static_cast<double>(options_.num_blocks)));
}

// Whether block i is one of the run that a hit of so many tokens needs.
bool BlockRules::ends_at(std::int64_t i, std::int64_t token) const {
  const std::int64_t last = floor_of(token, options_.block_size) - 1 + (options_.eagle ? 1 : 0);
  return i <= last && i > last - run();
}

bool BlockRules::keeps_key(std::int64_t i, std::int64_t prompt,
                           const std::optional<std::int64_t>& boundary) const {
  if (keeps_all()) return true;
  const std::int64_t r = run();
  if (r == 0) return false;
  const std::int64_t size = options_.block_size;
  const std::int64_t e = options_.eagle ? 1 : 0;
  if (const std::int64_t period = *options_.retention / size; period > 0) {
    if (r >= period || (i >= e && (i - e) % period >= period - r)) return true;
  }
  if (boundary && (ends_at(i, *boundary) || (options_.eagle && ends_at(i, *boundary - size))))
    return true;
  if (!options_.eagle) return ends_at(i, prompt - 1);
  const auto before = [&](std::int64_t tokens) {
    return std::max(floor_of(tokens, size) * size - size, std::int64_t{0});
  };
  return ends_at(i, before(prompt - 1)) || ends_at(i, before(prompt));
}

}  // namespace kvo::optimized
