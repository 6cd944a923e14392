// cuda/jobs/rope_shift.hpp: keys turned to other positions.
#pragma once

#include <cstdint>
#include <string_view>

#include "reference/contract/device/job.hpp"

namespace kvo::cuda {

/// Turns the pairs (d, d + half) of each head of each cell by the cell's angles, in double
/// precision: the sums and products of the reference, which is why kernels are compiled without
/// fused ones. The angles' sines come from the host, whose library a card need not agree with.
/// Source  rotary embedding: Su et al., RoFormer, arXiv:2104.09864, in the order of halves.
struct RopeShift {
  static constexpr std::string_view kName = "rope_shift";
  float* keys;           ///< [cells, heads, dim]
  const double* cosine;  ///< [cells, dim / 2]
  const double* sine;    ///< [cells, dim / 2]
  std::int64_t cells;
  std::int64_t heads;
  std::int64_t dim;  ///< an odd last element stays

  [[nodiscard]] KVO_HD constexpr std::int64_t items() const { return cells * heads * (dim / 2); }
  template <class Memory>
  KVO_HD constexpr void run(std::int64_t i, Memory& memory) const {
    const std::int64_t half = dim / 2;
    const std::int64_t d = i % half;
    const std::int64_t row = i / half;  // a head of a cell
    const std::int64_t angle = row / heads * half + d;
    float* const first = keys + row * dim + d;
    const double x = memory.load(first);
    const double y = memory.load(first + half);
    const double cos = memory.load(cosine + angle);
    const double sin = memory.load(sine + angle);
    memory.store(first, static_cast<float>(x * cos - y * sin));
    memory.store(first + half, static_cast<float>(x * sin + y * cos));
  }
  [[nodiscard]] JobArguments arguments() const {
    return {JobArgument::of("keys", keys),   JobArgument::of("cosine", cosine),
            JobArgument::of("sine", sine),   JobArgument::of("cells", cells),
            JobArgument::of("heads", heads), JobArgument::of("dim", dim)};
  }
};

}  // namespace kvo::cuda
