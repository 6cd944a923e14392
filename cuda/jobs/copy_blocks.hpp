// cuda/jobs/copy_blocks.hpp: blocks of a pool into others of it: copy on write.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuda/jobs/unit.hpp"

namespace kvo::cuda {

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

}  // namespace kvo::cuda
