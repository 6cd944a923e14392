// cuda/jobs/append_layers.hpp: a decode step of all layers in one kernel.
#pragma once

#include <cstdint>
#include <string_view>

#include "reference/contract/device/jobs.hpp"

namespace kvo::cuda {

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

}  // namespace kvo::cuda
