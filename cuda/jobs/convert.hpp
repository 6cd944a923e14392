// cuda/jobs/convert.hpp: cells of one floating-point type from those of another.
//
// A thread takes eight cells at once where the addresses allow: 16 bytes a load and a store, so
// that as many bytes are under way as in a copy. Of cells of a byte it takes one. Source   IEEE
// 754-2019.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuda/jobs/cell_format.hpp"
#include "cuda/jobs/unit.hpp"

namespace kvo::cuda {

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
    return {JobArgument::of("to", to), JobArgument::of("from", from),
            JobArgument::of("count", count)};
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

}  // namespace kvo::cuda
