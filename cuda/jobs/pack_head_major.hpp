// cuda/jobs/pack_head_major.hpp: rows position by position become rows head by head.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuda/jobs/unit.hpp"

namespace kvo::cuda {

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
