// cuda/jobs/build_mask.hpp: what each token of a batch may see of the cells.
#pragma once

#include <cstdint>
#include <string_view>

#include "reference/contract/device/job.hpp"

namespace kvo::cuda {

/// mask[t, c] = 0 where token t sees cell low + c, else -inf (rules OK-30, OK-31, OK-36, OK-38):
/// the cell belongs to its sequence, is not later than itself unless the token looks ahead, and
/// lies in its window and its chunk. Sequences are numbered from 0 here; owners has a bit for each.
/// Cell is uint32 (binary32 bits) or uint16 (binary16).
template <class Cell>
struct BuildMask {
  static constexpr std::string_view kName = "build_mask";
  static constexpr Cell kHidden = sizeof(Cell) == 4 ? Cell(0xFF800000U) : Cell(0xFC00U);
  Cell* mask;                          ///< [tokens, columns]
  const std::int32_t* positions;       ///< [tokens]
  const std::int32_t* sequences;       ///< [tokens]
  const std::uint8_t* ahead;           ///< [tokens]: 1 for one that looks ahead
  const std::int32_t* cell_positions;  ///< [cells]
  const std::uint32_t* owners;         ///< [cells, words]
  std::int64_t tokens;
  std::int64_t low;      ///< the first cell shown
  std::int64_t columns;  ///< cells shown
  std::int64_t words;    ///< sequences / 32, rounded up
  std::int64_t window;   ///< positions before its own that a token sees at most
  std::int64_t chunk;    ///< positions of a chunk; 0: none

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return tokens * columns; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    memory.store(mask + i, sees(i / columns, low + i % columns, memory) ? Cell(0) : kHidden);
  }
  [[nodiscard]] JobArguments arguments() const {
    return named_arguments(
        "mask positions sequences ahead cell_positions owners tokens low columns words window "
        "chunk",
        {mask, positions, sequences, ahead, cell_positions, owners, tokens, low, columns, words,
         window, chunk});
  }

 private:
  template <class Memory>
  [[nodiscard]] KVO_HD constexpr bool sees(std::int64_t token, std::int64_t cell,
                                           Memory& memory) const {
    const std::int64_t sequence = memory.load(sequences + token);
    const std::uint32_t bits = memory.load(owners + cell * words + sequence / 32);
    if ((bits >> static_cast<unsigned>(sequence % 32) & 1U) == 0) return false;
    const std::int64_t own = memory.load(positions + token);
    const std::int64_t seen = memory.load(cell_positions + cell);
    if (seen > own && memory.load(ahead + token) == 0) return false;
    return seen >= own - window && (chunk == 0 || seen >= own - own % chunk);
  }
};

}  // namespace kvo::cuda
