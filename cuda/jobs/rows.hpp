// cuda/jobs/rows.hpp: jobs that move whole rows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
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
    return named_arguments(
        "buffer rows batch seq width first max_seq",
        {JobArgument(buffer, width), JobArgument(rows, width), batch, seq, width, first, max_seq});
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
    return named_arguments("buffers sources counter count dim max_seq_len",
                           {buffers, sources, counter, count, dim, max_seq_len});
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
    return named_arguments("pool pairs count units", {pool, pairs, count, units});
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

/// Rows to their places in a buffer, to[place of first + r] = from[r], or from there:
/// to[r] = from[place of first + r]. No two rows have one place. Widths are counted in units.
template <class Place, bool kInto, class Unit>
struct MoveRows {
  static constexpr std::string_view kName = Place::name(kInto);
  Unit* to;
  const Unit* from;
  Place place;
  std::int64_t width;
  std::int64_t first;  ///< position of the first row
  std::int64_t count;

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return count * width; }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t at = place.of(first + i / width, memory) * width + i % width;
    memory.store(to + (kInto ? at : i), memory.load(from + (kInto ? i : at)));
  }
  [[nodiscard]] JobArguments arguments() const {
    const std::optional<std::int64_t> none;
    const JobArgument target(to, width, kInto ? none : first);
    const JobArgument source(from, width, kInto ? first : none);
    if constexpr (requires { place.table; })
      return named_arguments("to from width first count block table",
                             {target, source, width, first, count, place.size, place.table});
    else
      return named_arguments("to from width first count capacity",
                             {target, source, width, first, count, place.size});
  }
};

/// The same with widths in bytes.
template <bool kInto, class Place>
[[nodiscard]] Job move_rows(DevicePtr to, DevicePtr from, const Place& place,
                            std::int64_t row_bytes, std::int64_t first, std::int64_t count) {
  return in_units(
      {to.address, from.address, static_cast<std::uint64_t>(row_bytes)},
      [&]<class Unit>(Unit /*unit*/, std::int64_t bytes) {
        return Job(MoveRows<Place, kInto, Unit>{to.as<Unit>(), from.as<const Unit>(), place,
                                                row_bytes / bytes, first, count});
      });
}

/// Blocks of a pool are numbered, and the table says which holds the positions from n * size on.
struct PagedPlace {
  const std::int32_t* table;  ///< [blocks of the sequence]
  std::int64_t size;          ///< positions of a block

  template <class Memory>
  [[nodiscard]] KVO_HD constexpr std::int64_t of(std::int64_t position, Memory& memory) const {
    const std::int64_t number = memory.load(table + position / size);
    return number * size + position % size;
  }
  static constexpr std::string_view name(bool into) {
    return into ? "append_paged" : "gather_paged";
  }
};

/// Positions go round a ring.
struct RingPlace {
  std::int64_t size;  ///< rows

  template <class Memory>
  [[nodiscard]] KVO_HD constexpr std::int64_t of(std::int64_t position, Memory& /*memory*/) const {
    return position % size;
  }
  static constexpr std::string_view name(bool /*into*/) { return "ring_linearise"; }
};

// As launchers.cu lists them.
template <class Unit>
using AppendPaged = MoveRows<PagedPlace, true, Unit>;
template <class Unit>
using GatherPaged = MoveRows<PagedPlace, false, Unit>;
template <class Unit>
using RingLinearise = MoveRows<RingPlace, false, Unit>;

/// Rows to the blocks of a pool and from there, with widths in bytes. Block: positions of one.
struct PagedRows {
  DevicePtr pool;
  DevicePtr rows;
  DevicePtr table;
  std::int64_t block = 0;
  std::int64_t row_bytes = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;

  [[nodiscard]] Job append() const {
    return move_rows<true>(pool, rows, place(), row_bytes, first, count);
  }
  [[nodiscard]] Job gather() const {
    return move_rows<false>(rows, pool, place(), row_bytes, first, count);
  }

 private:
  [[nodiscard]] PagedPlace place() const { return {table.as<const std::int32_t>(), block}; }
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
    return named_arguments("to from seq heads dim first max_seq",
                           {to, from, seq, heads, dim, first, max_seq});
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
