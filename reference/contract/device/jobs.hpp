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
    return {JobArgument::rows("dst", buffer, dim, 0), JobArgument::of("src", source),
            JobArgument::of("counter", counter), JobArgument::of("dim", dim),
            JobArgument::of("max_seq_len", max_seq_len)};
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
    return {JobArgument::of("counter", counter), JobArgument::of("delta", std::int64_t{delta})};
  }
};

/// binary16 cells from binary32 cells: to nearest, ties to even.
struct ToHalfJob {
  static constexpr std::string_view kName = "to_half";
  std::uint16_t* to;          ///< [count]
  const std::uint32_t* from;  ///< [count], bits
  std::int64_t count;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    memory.store(to + i, half_of_float_bits(memory.load(from + i)));
  }
  [[nodiscard]] bool touch(JobMemory& memory) {
    return memory.map(to, 0, count) && memory.map(from, 0, count);
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::of("dst", to), JobArgument::of("src", from),
            JobArgument::of("size", count)};
  }
};

/// binary32 cells from binary16 cells, exactly.
struct ToFloatJob {
  static constexpr std::string_view kName = "to_float";
  std::uint32_t* to;          ///< [count], bits
  const std::uint16_t* from;  ///< [count]
  std::int64_t count;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    memory.store(to + i, float_of_half_bits(memory.load(from + i)));
  }
  [[nodiscard]] bool touch(JobMemory& memory) {
    return memory.map(to, 0, count) && memory.map(from, 0, count);
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::of("dst", to), JobArgument::of("src", from),
            JobArgument::of("size", count)};
  }
};

static_assert(IsJob<OffsetCopyJob> && IsJob<OffsetCopyHalfJob> && IsJob<IncrementJob> &&
              IsJob<ToHalfJob> && IsJob<ToFloatJob>);

}  // namespace kvo
