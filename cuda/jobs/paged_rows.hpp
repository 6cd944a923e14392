// cuda/jobs/paged_rows.hpp: rows of a sequence in the blocks of a pool, to and fro.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuda/jobs/unit.hpp"

namespace kvo::cuda {

/// Where the position lies: blocks of the pool are numbered, and the table says which holds the
/// positions from n * block on. Widths are counted in units.
struct PagedPlace {
  const std::int32_t* table;  ///< [blocks of the sequence]
  std::int64_t block;         ///< positions of one
  std::int64_t width;

  template <class Memory>
  [[nodiscard]] KVO_HD constexpr std::int64_t of(std::int64_t position, Memory& memory) const {
    const std::int64_t number = memory.load(table + position / block);
    return (number * block + position % block) * width;
  }
};

/// pool[place of first + r] = rows[r].
template <class Unit>
struct AppendPaged {
  static constexpr std::string_view kName = "append_paged";
  Unit* pool;        ///< [blocks, block, width]
  const Unit* rows;  ///< [count, width]
  PagedPlace place;
  std::int64_t first;  ///< position of the first row
  std::int64_t count;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count * place.width; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t to = place.of(first + i / place.width, memory) + i % place.width;
    memory.store(pool + to, memory.load(rows + i));
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::rows("pool", pool, place.width),
            JobArgument::rows("rows", rows, place.width, first),
            JobArgument::of("table", place.table),
            JobArgument::of("block", place.block),
            JobArgument::of("width", place.width),
            JobArgument::of("first", first),
            JobArgument::of("count", count)};
  }
};

/// rows[r] = pool[place of first + r].
template <class Unit>
struct GatherPaged {
  static constexpr std::string_view kName = "gather_paged";
  Unit* rows;        ///< [count, width]
  const Unit* pool;  ///< [blocks, block, width]
  PagedPlace place;
  std::int64_t first;
  std::int64_t count;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count * place.width; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t from = place.of(first + i / place.width, memory) + i % place.width;
    memory.store(rows + i, memory.load(pool + from));
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::rows("rows", rows, place.width, first),
            JobArgument::rows("pool", pool, place.width),
            JobArgument::of("table", place.table),
            JobArgument::of("block", place.block),
            JobArgument::of("width", place.width),
            JobArgument::of("first", first),
            JobArgument::of("count", count)};
  }
};

/// Both with widths in bytes. Block: positions of one.
struct PagedRows {
  DevicePtr pool;
  DevicePtr rows;
  DevicePtr table;
  std::int64_t block = 0;
  std::int64_t row_bytes = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;

  [[nodiscard]] Job append() const {
    return in_units({pool.address, rows.address, static_cast<std::uint64_t>(row_bytes)},
                    [&]<class Unit>(Unit /*unit*/, std::int64_t bytes) {
                      return Job(AppendPaged<Unit>{pool.as<Unit>(), rows.as<const Unit>(),
                                                   place(bytes), first, count});
                    });
  }
  [[nodiscard]] Job gather() const {
    return in_units({pool.address, rows.address, static_cast<std::uint64_t>(row_bytes)},
                    [&]<class Unit>(Unit /*unit*/, std::int64_t bytes) {
                      return Job(GatherPaged<Unit>{rows.as<Unit>(), pool.as<const Unit>(),
                                                   place(bytes), first, count});
                    });
  }

 private:
  [[nodiscard]] PagedPlace place(std::int64_t bytes) const {
    return {table.as<const std::int32_t>(), block, row_bytes / bytes};
  }
};

}  // namespace kvo::cuda
