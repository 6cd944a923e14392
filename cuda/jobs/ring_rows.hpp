// cuda/jobs/ring_rows.hpp: rows into a ring, and out of it in their order.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuda/jobs/rows.hpp"

namespace kvo::cuda {

/// ring[(first + r) % capacity] = rows[r]. Requires  count <= capacity: no slot is written twice.
template <class Unit>
struct RingWrite {
  static constexpr std::string_view kName = "ring_write";
  Unit* ring;        ///< [capacity, width]
  const Unit* rows;  ///< [count, width]
  std::int64_t capacity;
  std::int64_t width;
  std::int64_t first;  ///< position of the first row
  std::int64_t count;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count * width; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t slot = (first + i / width) % capacity;
    memory.store(ring + slot * width + i % width, memory.load(rows + i));
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::rows("ring", ring, width), JobArgument::rows("rows", rows, width),
            JobArgument::of("capacity", capacity),  JobArgument::of("width", width),
            JobArgument::of("first", first),        JobArgument::of("count", count)};
  }
};

/// rows[r] = ring[(first + r) % capacity].
template <class Unit>
struct RingLinearise {
  static constexpr std::string_view kName = "ring_linearise";
  Unit* rows;        ///< [count, width]
  const Unit* ring;  ///< [capacity, width]
  std::int64_t capacity;
  std::int64_t width;
  std::int64_t first;
  std::int64_t count;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count * width; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t slot = (first + i / width) % capacity;
    memory.store(rows + i, memory.load(ring + slot * width + i % width));
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::rows("rows", rows, width), JobArgument::rows("ring", ring, width),
            JobArgument::of("capacity", capacity),  JobArgument::of("width", width),
            JobArgument::of("first", first),        JobArgument::of("count", count)};
  }
};

/// Both with widths in bytes.
struct RingRows {
  DevicePtr ring;
  DevicePtr rows;
  std::int64_t capacity = 0;
  std::int64_t row_bytes = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;

  [[nodiscard]] Job write() const {
    return in_units({ring.address, rows.address, static_cast<std::uint64_t>(row_bytes)},
                    [&]<class Unit>(Unit /*unit*/, std::int64_t bytes) {
                      return Job(RingWrite<Unit>{ring.as<Unit>(), rows.as<const Unit>(), capacity,
                                                 row_bytes / bytes, first, count});
                    });
  }
  [[nodiscard]] Job linearise() const {
    return in_units({ring.address, rows.address, static_cast<std::uint64_t>(row_bytes)},
                    [&]<class Unit>(Unit /*unit*/, std::int64_t bytes) {
                      return Job(RingLinearise<Unit>{rows.as<Unit>(), ring.as<const Unit>(),
                                                     capacity, row_bytes / bytes, first, count});
                    });
  }
};

}  // namespace kvo::cuda
