// cuda/jobs/rope_shift.hpp: keys turned to other positions.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuda/jobs/cell_format.hpp"

namespace kvo::cuda {

/// Cosine and sine of an angle. They come from the host, whose library a card need not agree with.
struct alignas(16) Turn {
  double cosine;
  double sine;
};

/// Turns the pairs (d, d + half) of each head of consecutive cells, in place: those of cells that
/// move by the second row of the table, the others by the first or, without `all`, not at all. In
/// double precision: the sums and products of the reference, which is why kernels are compiled
/// without fused ones. Sizes of a head are counted in packs of kLanes elements.
/// Source  rotary embedding: Su et al., RoFormer, arXiv:2104.09864, in the order of halves.
template <class Format, int kLanes>
struct RopeShift {
  static constexpr std::string_view kName = "rope_shift";
  using Cells = Pack<typename Format::Cell, kLanes>;
  Cells* keys;                ///< [cells, heads, dim]
  const std::uint8_t* moved;  ///< [cells]: 1 for those that move
  const Turn* turns;          ///< [2, half * kLanes]
  std::int64_t cells;
  std::int64_t heads;
  std::int64_t dim;   ///< what follows two halves stays
  std::int64_t half;  ///< pairs
  std::int64_t all;   ///< 1: cells that do not move as well

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return cells * heads * half; }
  template <class Memory>
  KVO_HD void run(std::int64_t i, Memory& memory) const {
    const std::int64_t row = i / half;  // a head of a cell
    const std::int64_t moves = memory.load(moved + row / heads);
    if (moves == 0 && all == 0) return;
    Cells* const first = keys + row * dim + i % half;
    const Turn* const turn = turns + (moves * half + i % half) * kLanes;
    Cells x = memory.load(first);
    Cells y = memory.load(first + half);
    for (int lane = 0; lane < kLanes; ++lane)
      pair(x.lanes[lane], y.lanes[lane], memory.load(turn + lane));
    memory.store(first, x);
    memory.store(first + half, y);
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::rows("keys", keys, heads * dim),
            JobArgument::of("moved", moved),
            JobArgument::of("turns", turns),
            JobArgument::of("cells", cells),
            JobArgument::of("heads", heads),
            JobArgument::of("dim", dim),
            JobArgument::of("half", half),
            JobArgument::of("all", all)};
  }

 private:
  using Cell = typename Format::Cell;
  KVO_HD static void pair(Cell& first, Cell& second, const Turn& turn) {
    const double x = float_of(Format::widen(first));
    const double y = float_of(Format::widen(second));
    first = rounded(x * turn.cosine - y * turn.sine);
    second = rounded(x * turn.sine + y * turn.cosine);
  }
  [[nodiscard]] KVO_HD static Cell rounded(double value) {
    return Format::narrow(bits_of(static_cast<float>(value)));
  }
};

/// Adds to each element of consecutive cells, in place and in binary32: `added` to those of cells
/// that move, `kept` to the others or, without `all`, nothing.
template <class Format>
struct AddShift {
  static constexpr std::string_view kName = "add_shift";
  using Cell = typename Format::Cell;
  Cell* keys;                 ///< [cells, width]
  const std::uint8_t* moved;  ///< [cells]: 1 for those that move
  std::int64_t cells;
  std::int64_t width;
  std::int64_t all;  ///< 1: cells that do not move as well
  float kept;        ///< scale * 0, which may be a negative zero or no number
  float added;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return cells * width; }
  template <class Memory>
  KVO_HD void run(std::int64_t i, Memory& memory) const {
    const bool moves = memory.load(moved + i / width) != 0;
    if (!moves && all == 0) return;
    const float key = float_of(Format::widen(memory.load(keys + i)));
    const float sum = key + (moves ? added : kept);
    memory.store(keys + i, Format::narrow(bits_of(sum)));
  }
  [[nodiscard]] JobArguments arguments() const {
    const auto bits = [](float value) { return std::int64_t{bits_of(value)}; };
    return {JobArgument::rows("keys", keys, width),
            JobArgument::of("moved", moved),
            JobArgument::of("cells", cells),
            JobArgument::of("width", width),
            JobArgument::of("all", all),
            JobArgument::of("kept", bits(kept)),
            JobArgument::of("added", bits(added))};
  }
};

/// Keys of consecutive cells that move together, with sizes in elements.
struct ShiftKeys {
  DType dtype = DType::kF32;
  DevicePtr keys;   ///< [cells, heads, dim]
  DevicePtr moved;  ///< [cells]
  std::int64_t cells = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  bool all = false;

  /// By the angles of a table, [2, dim / 2] of Turn; two pairs at a time where sizes allow.
  [[nodiscard]] Job turned(DevicePtr turns) const {
    return in_format(dtype, [&]<class Format>(Format /*format*/) -> Job {
      constexpr int kLanes = 2;  // four need more than 32 registers
      using Packed = RopeShift<Format, kLanes>;
      const bool aligned = dim % (std::int64_t{2} * kLanes) == 0 &&
                           keys.address % sizeof(typename Packed::Cells) == 0;
      return aligned ? Job(turn<Packed>(turns, kLanes)) : Job(turn<RopeShift<Format, 1>>(turns, 1));
    });
  }
  [[nodiscard]] Job added(float kept, float added) const {
    return in_format(dtype, [&]<class Format>(Format /*format*/) -> Job {
      return AddShift<Format>{keys.as<typename Format::Cell>(),
                              moved.as<const std::uint8_t>(),
                              cells,
                              heads * dim,
                              all ? 1 : 0,
                              kept,
                              added};
    });
  }

 private:
  template <class Rope>
  [[nodiscard]] Rope turn(DevicePtr turns, int lanes) const {
    return {keys.as<typename Rope::Cells>(),
            moved.as<const std::uint8_t>(),
            turns.as<const Turn>(),
            cells,
            heads,
            dim / lanes,
            dim / 2 / lanes,
            all ? 1 : 0};
  }
};

}  // namespace kvo::cuda
