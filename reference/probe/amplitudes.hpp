// reference/probe/amplitudes.hpp: how a query finds the row at one distance and no other row.
//
// RoPE turns pair i of a head by frequency * position. A query that is aligned with the key at
// distance k has, at distance k + d, the score
//   f(d) = sum over i of amplitude[i] * cos(frequency[i] * d)
// times a constant. The amplitudes are at least 0 and have the sum 1, so f(0) = 1. They make `rho`,
// the largest |f(d)| for 1 <= d < positions, as small as possible: a linear program, solved once
// with scipy's linprog (HiGHS).
#pragma once

#include <cstddef>
#include <span>

#include "reference/probe/tables.hpp"

namespace kvo::probe {

/// One pair of dimensions: i and i + head_dim / 2.
struct Pair {
  double frequency;  ///< theta^(-2 i / head_dim), rounded once
  double amplitude;
};

/// The solution for one head_dim.
struct Amplitudes {
  std::size_t positions;
  double theta;
  double rho;
  std::span<const Pair> pairs;  ///< the fastest ones, from i = 0
};

/// Requires  head_dim is 64 (12 pairs) or 128 (24 pairs).
[[nodiscard]] const Amplitudes& amplitudes_of(std::size_t head_dim);

/// f(distance).
[[nodiscard]] double score_at(const Amplitudes& amplitudes, std::size_t distance);

}  // namespace kvo::probe
