// reference/contract/device/jobs.hpp: the kernels of the device caches, as index arithmetic.
//
// They lie beside the device interface, and not in cuda/, since the reference caches ask a device
// for them; the same lines run on the host and, compiled by nvcc, on a card. Index products are 64
// bits wide.
// Source   rules ZF-47 (offset_memcpy, increment_counter) and ZF-67 (conversion).
#pragma once

#include <cstdint>
#include <string_view>

#include "reference/contract/device/cell_bits.hpp"
#include "reference/contract/device/job.hpp"
#include "reference/contract/device/portable.hpp"

namespace kvo {

/// A cell of a buffer from the bits of a binary32.
template <class Cell>
[[nodiscard]] KVO_HD constexpr Cell cell_of(std::uint32_t bits) {
  if constexpr (sizeof(Cell) == sizeof(bits)) {
    return bits;
  } else {
    return half_of_float_bits(bits);
  }
}

/// Writes one row at the position that the counter holds; nothing at max_seq_len or above.
/// Cell is uint32 (binary32 bits) or uint16 (binary16).
template <class Cell>
struct OffsetCopy {
  static constexpr std::string_view kName = "offset_memcpy";
  Cell* buffer;                 ///< [max_seq_len, dim]
  const std::uint32_t* source;  ///< [dim], binary32 bits
  const std::int32_t* counter;  ///< the position, 0 or above
  std::int64_t dim;             ///< cells of a row
  std::int64_t max_seq_len;     ///< positions

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return dim; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t position = memory.load(counter);
    if (position >= max_seq_len) return;
    memory.store(buffer + position * dim + i, cell_of<Cell>(memory.load(source + i)));
  }
  [[nodiscard]] bool touch(JobMemory& memory) {
    if (!memory.map(counter, 0, 1) || *counter < 0) return false;
    if (*counter >= max_seq_len) return true;
    std::int64_t first = 0;
    if (__builtin_mul_overflow(std::int64_t{*counter}, dim, &first)) return false;
    return memory.map(source, 0, dim) && memory.map(buffer, first, dim);
  }
  [[nodiscard]] JobArguments arguments() const {
    return named_arguments("dst src counter dim max_seq_len",
                           {JobArgument(buffer, dim, 0), source, counter, dim, max_seq_len});
  }
};
using OffsetCopyJob = OffsetCopy<std::uint32_t>;
using OffsetCopyHalfJob = OffsetCopy<std::uint16_t>;

/// *counter += delta.
struct IncrementJob {
  static constexpr std::string_view kName = "increment_counter";
  std::int32_t* counter;
  std::int32_t delta;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return 1; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t /*i*/, Memory& memory) const {
    const auto before = static_cast<std::uint32_t>(memory.load(counter));
    memory.store(counter, static_cast<std::int32_t>(before + static_cast<std::uint32_t>(delta)));
  }
  [[nodiscard]] bool touch(JobMemory& memory) { return memory.map(counter, 0, 1); }
  [[nodiscard]] JobArguments arguments() const {
    return named_arguments("counter delta", {counter, std::int64_t{delta}});
  }
};

/// Cells of binary16 from those of binary32, to nearest, ties to even; or the other way, exactly.
template <class To, class From>
struct ConversionJob {
  static constexpr std::string_view kName = sizeof(To) < sizeof(From) ? "to_half" : "to_float";
  To* to;            ///< [count], bits
  const From* from;  ///< [count], bits
  std::int64_t count;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    if constexpr (sizeof(To) < sizeof(From))
      memory.store(to + i, half_of_float_bits(memory.load(from + i)));
    else
      memory.store(to + i, float_of_half_bits(memory.load(from + i)));
  }
  [[nodiscard]] bool touch(JobMemory& memory) {
    return memory.map(to, 0, count) && memory.map(from, 0, count);
  }
  [[nodiscard]] JobArguments arguments() const {
    return named_arguments("dst src size", {to, from, count});
  }
};
using ToHalfJob = ConversionJob<std::uint16_t, std::uint32_t>;
using ToFloatJob = ConversionJob<std::uint32_t, std::uint16_t>;

static_assert(IsJob<OffsetCopyJob> && IsJob<OffsetCopyHalfJob> && IsJob<IncrementJob> &&
              IsJob<ToHalfJob> && IsJob<ToFloatJob>);

}  // namespace kvo
