// cuda/jobs/rows.hpp: jobs that move whole rows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "reference/contract/device/job.hpp"
#include "reference/contract/device/jobs.hpp"

namespace kvo::cuda {

// In what pieces rows are copied.
//
// A thread that moves 16 bytes at a time needs an eighth of the instructions of one that moves a
// half, and fills a line of 128 bytes with 8 threads. Rows are copied in the widest unit that
// divides every address and size.

/// 16 bytes, loaded and stored at once.
struct alignas(16) Wide {
  std::uint32_t words[4];
};

/// What make(Unit(), bytes of it) returns, of the widest unit that divides all `sizes` (bytes, and
/// addresses). Sizes of a job are counted in units.
template <class Make>
[[nodiscard]] Job in_units(std::initializer_list<std::uint64_t> sizes, const Make& make) {
  std::uint64_t all = 0;
  for (const std::uint64_t size : sizes) all |= size;
  if (all % sizeof(Wide) == 0) return make(Wide(), std::int64_t{sizeof(Wide)});
  if (all % 4 == 0) return make(std::uint32_t(), std::int64_t{4});
  if (all % 2 == 0) return make(std::uint16_t(), std::int64_t{2});
  return make(std::uint8_t(), std::int64_t{1});
}

/// buffer[b, first + s] = rows[b, s]. Widths are counted in units.
template <class Unit>
struct AppendRows {
  static constexpr std::string_view kName = "append_rows";
  Unit* buffer;      ///< [batch, max_seq, width]
  const Unit* rows;  ///< [batch, seq, width]
  std::int64_t batch;
  std::int64_t seq;
  std::int64_t width;
  std::int64_t first;    ///< position of the first row
  std::int64_t max_seq;  ///< positions

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return batch * seq * width; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t lane = seq * width;
    const std::int64_t to = ((i / lane) * max_seq + first) * width + i % lane;
    memory.store(buffer + to, memory.load(rows + i));
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::rows("buffer", buffer, width),
            JobArgument::rows("rows", rows, width),
            JobArgument::of("batch", batch),
            JobArgument::of("seq", seq),
            JobArgument::of("width", width),
            JobArgument::of("first", first),
            JobArgument::of("max_seq", max_seq)};
  }
};

/// The same with widths in bytes.
[[nodiscard]] inline Job append_rows(DevicePtr buffer, DevicePtr rows, std::int64_t batch,
                                     std::int64_t seq, std::int64_t row_bytes, std::int64_t first,
                                     std::int64_t max_seq) {
  return in_units({buffer.address, rows.address, static_cast<std::uint64_t>(row_bytes)},
                  [&]<class Unit>(Unit /*unit*/, std::int64_t bytes) {
                    return Job(AppendRows<Unit>{buffer.as<Unit>(), rows.as<const Unit>(), batch,
                                                seq, row_bytes / bytes, first, max_seq});
                  });
}

/// buffers[b][position] = sources[b] for each buffer, K and V of all layers, at the position that
/// the counter holds; nothing at max_seq_len or above. What OffsetCopy does of one (ZF-47), in one
/// launch. Cell is uint32 (binary32 bits) or uint16 (binary16).
template <class Cell>
struct AppendLayers {
  static constexpr std::string_view kName = "append_layers";
  Cell* const* buffers;                 ///< [count] addresses of [max_seq_len, dim]
  const std::uint32_t* const* sources;  ///< [count] addresses of [dim], binary32 bits
  const std::int32_t* counter;          ///< the position, 0 or above
  std::int64_t count;
  std::int64_t dim;  ///< cells of a row
  std::int64_t max_seq_len;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count * dim; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t position = memory.load(counter);
    if (position >= max_seq_len) return;
    const std::uint32_t bits = memory.load(memory.load(sources + i / dim) + i % dim);
    memory.store(memory.load(buffers + i / dim) + position * dim + i % dim, cell_of<Cell>(bits));
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::of("buffers", buffers), JobArgument::of("sources", sources),
            JobArgument::of("counter", counter), JobArgument::of("count", count),
            JobArgument::of("dim", dim),         JobArgument::of("max_seq_len", max_seq_len)};
  }
};

/// pool[pairs[p][1]] = pool[pairs[p][0]]. No block is written that another pair reads or writes.
template <class Unit>
struct CopyBlocks {
  static constexpr std::string_view kName = "copy_blocks";
  Unit* pool;                 ///< [blocks, units]
  const std::int32_t* pairs;  ///< [count, 2]: from, to
  std::int64_t count;
  std::int64_t units;  ///< of a block

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count * units; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int32_t* const pair = pairs + 2 * (i / units);
    const std::int64_t from = memory.load(pair);
    const std::int64_t to = memory.load(pair + 1);
    memory.store(pool + to * units + i % units, memory.load(pool + from * units + i % units));
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::of("pool", pool), JobArgument::of("pairs", pairs),
            JobArgument::of("count", count), JobArgument::of("units", units)};
  }
};

/// The same with the size of a block in bytes.
[[nodiscard]] inline Job copy_blocks(DevicePtr pool, DevicePtr pairs, std::int64_t count,
                                     std::int64_t block_bytes) {
  return in_units({pool.address, static_cast<std::uint64_t>(block_bytes)},
                  [&]<class Unit>(Unit /*unit*/, std::int64_t bytes) {
                    return Job(CopyBlocks<Unit>{pool.as<Unit>(), pairs.as<const std::int32_t>(),
                                                count, block_bytes / bytes});
                  });
}

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

/// to[h, first + s] = from[s, h].
template <class Unit>
struct PackHeadMajor {
  static constexpr std::string_view kName = "pack_head_major";
  Unit* to;          ///< [heads, max_seq, dim]
  const Unit* from;  ///< [seq, heads, dim]
  std::int64_t seq;
  std::int64_t heads;
  std::int64_t dim;
  std::int64_t first;
  std::int64_t max_seq;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return seq * heads * dim; }
  /// Items are those of `to`, so that threads beside each other write beside each other.
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t d = i % dim;
    const std::int64_t s = i / dim % seq;
    const std::int64_t h = i / dim / seq;
    memory.store(to + (h * max_seq + first + s) * dim + d,
                 memory.load(from + (s * heads + h) * dim + d));
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::of("to", to),          JobArgument::of("from", from),
            JobArgument::of("seq", seq),        JobArgument::of("heads", heads),
            JobArgument::of("dim", dim),        JobArgument::of("first", first),
            JobArgument::of("max_seq", max_seq)};
  }
};

/// The same with the size of a head's row in bytes.
[[nodiscard]] inline Job pack_head_major(DevicePtr to, DevicePtr from, std::int64_t seq,
                                         std::int64_t heads, std::int64_t head_bytes,
                                         std::int64_t first, std::int64_t max_seq) {
  return in_units({to.address, from.address, static_cast<std::uint64_t>(head_bytes)},
                  [&]<class Unit>(Unit /*unit*/, std::int64_t bytes) {
                    return Job(PackHeadMajor<Unit>{to.as<Unit>(), from.as<const Unit>(), seq, heads,
                                                   head_bytes / bytes, first, max_seq});
                  });
}

}  // namespace kvo::cuda
