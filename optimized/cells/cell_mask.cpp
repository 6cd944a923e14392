// What tokens see, as an interval of their sequence's cells.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "optimized/cells/cell_half.hpp"

namespace kvo::optimized {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// Positions [begin, end) that a window lets a token at `pos` see (LC-53). Position -1 is none.
struct SeenPositions {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

SeenPositions seen_from(const cells::Window& window, std::int64_t pos) {
  SeenPositions seen{0, std::numeric_limits<std::int64_t>::max()};
  switch (window.type) {
    case cells::WindowType::kNone:
      break;
    case cells::WindowType::kStandard:
      seen.begin = pos - window.size + 1;
      break;
    case cells::WindowType::kChunked:
      seen.begin = pos / window.size * window.size;
      break;
    case cells::WindowType::kSymmetric:
      seen = {pos - window.size / 2, pos + window.size / 2 + 1};
      break;
  }
  return seen;
}

}  // namespace

void CellHalf::mask(const PlacedBatch& batch, const MaskRule& rule, std::int64_t n_kv,
                    std::span<float> out) const {
  std::array<std::int64_t, cells::kSequences> first{};  // of the ubatch, by primary
  const bool whole = rule.whole_ubatch && !rule.causal;
  const auto token_at = [&](std::size_t i) -> const BatchPlan::Token& {
    return batch.plan.tokens()[static_cast<std::size_t>(batch.plan.rows()[i])];
  };
  if (whole) {
    first.fill(std::numeric_limits<std::int64_t>::max());
    for (const PlacedRun& run : batch.runs)
      for (std::size_t i = run.begin; i < run.end; ++i) {
        std::int64_t& lowest = first[static_cast<std::size_t>(token_at(i).primary)];
        lowest = std::min<std::int64_t>(lowest, token_at(i).pos);
      }
  }
  std::ranges::fill(out, kHidden);
  float* row = out.data();
  for (const PlacedRun& run : batch.runs)
    for (std::size_t i = run.begin; i < run.end; ++i, row += n_kv) {
      const BatchPlan::Token& token = token_at(i);
      SeenPositions seen = seen_from(window_, token.pos);
      if (rule.causal) seen.end = std::min<std::int64_t>(seen.end, std::int64_t{token.pos} + 1);
      if (whole) {
        const std::int64_t from = first[static_cast<std::size_t>(token.primary)];
        seen = {std::min(seen.begin, from), std::numeric_limits<std::int64_t>::max()};
      }
      const OwnedCells& its = table(run.stream).of(token.primary);
      for (const CellAt& each : its.between(std::max<std::int64_t>(seen.begin, 0), seen.end)) {
        const std::int64_t distance = std::abs(std::int64_t{each.pos} - token.pos);
        row[each.cell] = rule.alibi ? static_cast<float>(-distance) : 0.0F;
      }
    }
}

}  // namespace kvo::optimized
