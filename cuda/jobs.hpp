// cuda/jobs.hpp: what the kernels of the device caches do, as index arithmetic.
//
// A job is a trivially copyable struct of pointers and sizes with items() and run(i). Items write
// disjoint cells, so every order of items leaves the same memory: the host runs them shuffled, a
// kernel in parallel. Index products are 64 bits wide.
// Source   rules ZF-47 (offset_memcpy, increment_counter) and ZF-67 (conversion).
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/half_bits.hpp"
#include "cuda/host_device.hpp"

namespace kvo::cuda {

/// Writes one row of 32-bit cells at the position that the counter holds; nothing at max_seq_len or
/// above.
struct OffsetCopyJob {
  std::uint32_t* buffer;        ///< [max_seq_len, dim], cells as bits
  const std::uint32_t* source;  ///< [dim]
  const std::int32_t* counter;  ///< the position, 0 or above
  std::int64_t dim;             ///< cells of a row
  std::int64_t max_seq_len;     ///< positions

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return dim; }
  KVO_HD constexpr void run(std::int64_t i) const {
    if (*counter >= max_seq_len) return;
    buffer[*counter * dim + i] = source[i];
  }
};

/// As OffsetCopyJob, into a buffer of binary16 cells.
struct OffsetCopyHalfJob {
  std::uint16_t* buffer;
  const std::uint32_t* source;
  const std::int32_t* counter;
  std::int64_t dim;
  std::int64_t max_seq_len;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return dim; }
  KVO_HD constexpr void run(std::int64_t i) const {
    if (*counter >= max_seq_len) return;
    buffer[*counter * dim + i] = half_of_float_bits(source[i]);
  }
};

/// *counter += delta.
struct IncrementJob {
  std::int32_t* counter;
  std::int32_t delta;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return 1; }
  KVO_HD constexpr void run(std::int64_t /*i*/) const { *counter += delta; }
};

/// binary16 cells from binary32 cells.
struct ToHalfJob {
  std::uint16_t* to;          ///< [count]
  const std::uint32_t* from;  ///< [count], bits
  std::int64_t count;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count; }
  KVO_HD constexpr void run(std::int64_t i) const { to[i] = half_of_float_bits(from[i]); }
};

/// binary32 cells from binary16 cells, exactly.
struct ToFloatJob {
  std::uint32_t* to;          ///< [count], bits
  const std::uint16_t* from;  ///< [count]
  std::int64_t count;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count; }
  KVO_HD constexpr void run(std::int64_t i) const { to[i] = float_of_half_bits(from[i]); }
};

template <class Job>
concept IsJob = std::is_trivially_copyable_v<Job> && requires(const Job& job) {
  job.items();
  job.run(0);
};
static_assert(IsJob<OffsetCopyJob> && IsJob<OffsetCopyHalfJob> && IsJob<IncrementJob> &&
              IsJob<ToHalfJob> && IsJob<ToFloatJob>);

/// Runs a job on the host, its items in the given order: a stand-in for a scheduler.
template <IsJob Job, class Order>
void run_on_host(const Job& job, const Order& order) {
  for (const std::int64_t item : order) job.run(item);
}

}  // namespace kvo::cuda
