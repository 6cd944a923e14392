// cuda/jobs/unit.hpp: in what pieces rows are copied.
//
// A thread that moves 16 bytes at a time needs an eighth of the instructions of one that moves a
// half, and fills a line of 128 bytes with 8 threads. Rows are copied in the widest unit that
// divides every address and size.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "reference/contract/device/job.hpp"

namespace kvo::cuda {

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

}  // namespace kvo::cuda
