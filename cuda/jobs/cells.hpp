// cuda/jobs/cells.hpp: jobs that store cells: converted, put by a table, or turned to another
// position.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "cuda/jobs/rows.hpp"
#include "reference/contract/device/cell_bits.hpp"
#include "reference/contract/device/job.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo::cuda {

// Each rounds the bits of a binary32 to its cells, to nearest, ties to even, NaNs quiet, and widens
// them exactly: the same bits on every device, since no arithmetic of one has a part in it.

struct FloatCell {
  using Cell = std::uint32_t;
  [[nodiscard]] static KVO_HD constexpr Cell narrow(std::uint32_t bits) { return bits; }
  [[nodiscard]] static KVO_HD constexpr std::uint32_t widen(Cell cell) { return cell; }
};

template <class C, C (*kNarrow)(std::uint32_t), std::uint32_t (*kWiden)(C)>
struct CellFormat {
  using Cell = C;
  [[nodiscard]] static KVO_HD constexpr Cell narrow(std::uint32_t bits) { return kNarrow(bits); }
  [[nodiscard]] static KVO_HD constexpr std::uint32_t widen(Cell cell) { return kWiden(cell); }
};
struct HalfCell : CellFormat<std::uint16_t, half_of_float_bits, float_of_half_bits> {};
struct BrainCell : CellFormat<std::uint16_t, brain_of_float_bits, float_of_brain_bits> {};
/// What is too large becomes the largest finite value. @{
struct E4m3Cell : CellFormat<std::uint8_t, e4m3_of_float_bits, float_of_e4m3_bits> {};
struct E5m2Cell : CellFormat<std::uint8_t, e5m2_of_float_bits, float_of_e5m2_bits> {};
/// @}

// std::bit_cast is no function of a device.
[[nodiscard]] KVO_HD inline float float_of(std::uint32_t bits) {
  float value = 0;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
[[nodiscard]] KVO_HD inline std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Cells that are loaded or stored at once.
template <class Cell, int kLanes>
struct alignas(sizeof(Cell) * kLanes) Pack {
  Cell lanes[kLanes];  // NOLINT(modernize-avoid-c-arrays): a kernel cannot call std::array
};

/// What make(format) returns for the format of a dtype. Requires a float.
template <class Make>
[[nodiscard]] Job in_format(DType dtype, const Make& make) {
  if (dtype == DType::kF16) return make(HalfCell());
  if (dtype == DType::kBF16) return make(BrainCell());
  if (dtype == DType::kF8E4M3) return make(E4m3Cell());
  if (dtype == DType::kF8E5M2) return make(E5m2Cell());
  return make(FloatCell());
}

// Cells of one floating-point type from those of another.
//
// A thread takes eight cells at once where the addresses allow: 16 bytes a load and a store, so
// that as many bytes are under way as in a copy. Of cells of a byte it takes one. Source   IEEE
// 754-2019.

/// Cells of an item whose unit is Wide.
inline constexpr std::int64_t kWideCells = 8;

/// One cell an item.
struct Scalar {};

/// to[i] = from[i], rounded. Unit is Wide, and both addresses are multiples of 16; or Scalar.
template <class To, class From, class Unit>
struct Convert {
  static constexpr std::string_view kName = "convert";
  static constexpr std::int64_t kCells = sizeof(Unit) == sizeof(Wide) ? kWideCells : 1;
  typename To::Cell* to;            ///< [count]
  const typename From::Cell* from;  ///< [count]
  std::int64_t count;

  /// Eight cells each, and one each of those that remain.
  [[nodiscard]] KVO_HD constexpr std::int64_t items() const {
    return count / kCells + count % kCells;
  }
  template <class Memory>
  KVO_HD void run(std::int64_t i, Memory& memory) const {
    const std::int64_t wide = kCells > 1 ? count / kCells : 0;
    if constexpr (kCells > 1) {
      if (i < wide) {
        run_wide(i * kCells, memory);
        return;
      }
    }
    const std::int64_t at = i + wide * (kCells - 1);
    memory.store(to + at, To::narrow(From::widen(memory.load(from + at))));
  }
  [[nodiscard]] JobArguments arguments() const {
    return named_arguments("to from count", {to, from, count});
  }

 private:
  template <class Type>
  static constexpr int kWides = static_cast<int>(kWideCells * sizeof(typename Type::Cell) /
                                                 sizeof(Wide));
  template <class Memory>
  KVO_HD void run_wide(std::int64_t first, Memory& memory) const {
    const auto* const in = reinterpret_cast<const Wide*>(from + first);
    auto* const out = reinterpret_cast<Wide*>(to + first);
    Wide read[kWides<From>];
    for (int w = 0; w < kWides<From>; ++w) read[w] = memory.load(in + w);
    for (int w = 0; w < kWides<To>; ++w) {
      Wide made{};
      for (int word = 0; word < 4; ++word) {
        const int cell = (4 * w + word) * static_cast<int>(4 / sizeof(typename To::Cell));
        made.words[word] = To::narrow(read_bits(read, cell));
        if constexpr (sizeof(typename To::Cell) == 2)
          made.words[word] |= std::uint32_t{To::narrow(read_bits(read, cell + 1))} << 16U;
      }
      memory.store(out + w, made);
    }
  }
  /// The binary32 of a cell; the first of two in a word is the lower half.
  static KVO_HD constexpr std::uint32_t read_bits(const Wide* read, int cell) {
    if constexpr (sizeof(typename From::Cell) == 2) {
      const std::uint32_t word = read[cell / 8].words[cell / 2 % 4];
      return From::widen(static_cast<typename From::Cell>(cell % 2 == 0 ? word : word >> 16U));
    } else {
      return From::widen(read[cell / 4].words[cell % 4]);
    }
  }
};

/// The same in the widest unit that the addresses allow; a cell an item for those of a byte.
template <class To, class From>
[[nodiscard]] Job convert(DevicePtr to, DevicePtr from, std::int64_t count) {
  if constexpr (sizeof(typename To::Cell) > 1 && sizeof(typename From::Cell) > 1)
    if ((to.address | from.address) % sizeof(Wide) == 0)
      return Convert<To, From, Wide>{to.as<typename To::Cell>(),
                                     from.as<const typename From::Cell>(), count};
  return Convert<To, From, Scalar>{to.as<typename To::Cell>(), from.as<const typename From::Cell>(),
                                   count};
}

/// Cells of type `To` from `count` cells of a type.
template <class To>
[[nodiscard]] Job convert_to(DevicePtr to, DevicePtr from, DType type, std::int64_t count) {
  KVO_CHECK(type != DType::kI32);
  if (type == DType::kF32) return convert<To, FloatCell>(to, from, count);
  if (type == DType::kF16) return convert<To, HalfCell>(to, from, count);
  return convert<To, BrainCell>(to, from, count);
}

/// Cells of a float type from those of binary32, and back.
[[nodiscard]] inline Job narrow_cells(DevicePtr to, DType type, DevicePtr from,
                                      std::int64_t count) {
  return in_format(type, [&]<class Format>(Format /*format*/) -> Job {
    return convert<Format, FloatCell>(to, from, count);
  });
}
[[nodiscard]] inline Job widen_cells(DevicePtr to, DevicePtr from, DType type, std::int64_t count) {
  return in_format(type, [&]<class Format>(Format /*format*/) -> Job {
    return convert<FloatCell, Format>(to, from, count);
  });
}

/// Requires two different types of floating point of more than 8 bits.
[[nodiscard]] inline Job convert_cells(DevicePtr to, DType to_type, DevicePtr from, DType from_type,
                                       std::int64_t count) {
  KVO_CHECK(to_type != DType::kI32 && to_type != from_type);
  if (to_type == DType::kF32) return convert_to<FloatCell>(to, from, from_type, count);
  if (to_type == DType::kF16) return convert_to<HalfCell>(to, from, from_type, count);
  return convert_to<BrainCell>(to, from, from_type, count);
}

// Rows to the cells of a pool, in its storage type.

/// cells[targets[r], i] = rows[r, i], rounded. Widths are counted in packs of kLanes elements.
template <class Format, int kLanes>
struct PutCells {
  static constexpr std::string_view kName = "put_cells";
  using To = Pack<typename Format::Cell, kLanes>;
  using From = Pack<std::uint32_t, kLanes>;
  To* cells;                    ///< [cells, width]
  const From* rows;             ///< [count, width], bits of binary32
  const std::int32_t* targets;  ///< [count]: cells, each once
  std::int64_t count;
  std::int64_t width;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count * width; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t cell = memory.load(targets + i / width);
    const From from = memory.load(rows + i);
    To to = {};
    for (int lane = 0; lane < kLanes; ++lane) to.lanes[lane] = Format::narrow(from.lanes[lane]);
    memory.store(cells + cell * width + i % width, to);
  }
  [[nodiscard]] JobArguments arguments() const {
    return named_arguments(
        "cells rows targets count width",
        {JobArgument(cells, width), JobArgument(rows, width), targets, count, width});
  }
};

/// columns[i, targets[r]] = rows[r, i], rounded: cells are the fastest axis. Neighbours among
/// threads store beside each other where their cells are neighbours.
template <class Format>
struct PutColumns {
  static constexpr std::string_view kName = "put_columns";
  using Cell = typename Format::Cell;
  Cell* columns;                ///< [width, cells]
  const std::uint32_t* rows;    ///< [count, width], bits of binary32
  const std::int32_t* targets;  ///< [count]: cells, each once
  std::int64_t count;
  std::int64_t width;
  std::int64_t cells;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count * width; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t row = i % count;
    const std::int64_t line = i / count;
    const std::int64_t cell = memory.load(targets + row);
    memory.store(columns + line * cells + cell,
                 Format::narrow(memory.load(rows + row * width + line)));
  }
  [[nodiscard]] JobArguments arguments() const {
    return named_arguments(
        "columns rows targets count width cells",
        {JobArgument(columns, cells), JobArgument(rows, width), targets, count, width, cells});
  }
};

/// Both with widths in elements; PutCells takes four at a time where addresses and width allow.
struct PutRows {
  DType dtype = DType::kF32;
  DevicePtr to;
  DevicePtr rows;
  DevicePtr targets;
  std::int64_t count = 0;
  std::int64_t width = 0;

  [[nodiscard]] Job cells() const {
    return in_format(dtype, [&]<class Format>(Format /*format*/) -> Job {
      constexpr int kLanes = 4;
      using Packed = PutCells<Format, kLanes>;
      const bool aligned = width % kLanes == 0 && to.address % sizeof(typename Packed::To) == 0 &&
                           rows.address % sizeof(typename Packed::From) == 0;
      return aligned ? Job(make<Packed>(kLanes)) : Job(make<PutCells<Format, 1>>(1));
    });
  }
  /// Into columns of a pool of `cells` cells.
  [[nodiscard]] Job columns(std::int64_t cells) const {
    return in_format(dtype, [&]<class Format>(Format /*format*/) -> Job {
      return PutColumns<Format>{to.as<typename Format::Cell>(),
                                rows.as<const std::uint32_t>(),
                                targets.as<const std::int32_t>(),
                                count,
                                width,
                                cells};
    });
  }

 private:
  template <class Put>
  [[nodiscard]] Put make(int lanes) const {
    return {to.as<typename Put::To>(), rows.as<const typename Put::From>(),
            targets.as<const std::int32_t>(), count, width / lanes};
  }
};

// Keys turned to other positions.

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
    return named_arguments(
        "keys moved turns cells heads dim half all",
        {JobArgument(keys, heads * dim), moved, turns, cells, heads, dim, half, all});
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
    return named_arguments(
        "keys moved cells width all kept added",
        {JobArgument(keys, width), moved, cells, width, all, bits(kept), bits(added)});
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
