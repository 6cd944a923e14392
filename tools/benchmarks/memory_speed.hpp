// tools/benchmarks/memory_speed.hpp: the physical limit that copies are compared with.
#pragma once

#include <cstdint>

namespace kvo::tools {

/// Median nanoseconds of one memcpy of `bytes` in this process, out of source memory that no cache
/// level holds. Each size is measured once a run. Not thread-safe.
[[nodiscard]] double memcpy_nanoseconds(std::uint64_t bytes);

}  // namespace kvo::tools
