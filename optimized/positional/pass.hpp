// optimized/positional/pass.hpp: what start_forward set up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "optimized/positional/cells.hpp"
#include "reference/positional/cache.hpp"

namespace kvo::optimized {

/// A sequence that a batch names.
struct BatchSequence {
  std::int64_t name = 0;
  SequenceCells* cells = nullptr;  ///< null: owns nothing
  std::int32_t low = positional::kMaxPosition;
  std::size_t tokens = 0;
  std::uint64_t version = 0;  ///< of its cells when the pass began
  std::optional<std::int64_t> last_row = std::nullopt;
};

/// What the last start_forward left (OK-5).
struct PositionalPass {
  std::vector<std::int32_t> positions;
  std::vector<std::uint32_t> sequence_of;  ///< index into sequences, for each token
  std::vector<BatchSequence> sequences;
  std::vector<std::int32_t> targets;  ///< the cell of each token; none of a reserve pass
  CellRange range;
  bool reserve = false;
  std::vector<std::int64_t> except;       ///< the list given last
  std::vector<std::int64_t> mask_except;  ///< the list that the mask was built with
};

}  // namespace kvo::optimized
