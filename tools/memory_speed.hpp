// tools/memory_speed.hpp: the physical limit that copies are compared with.
#pragma once

#include <cstdint>
#include <map>

namespace kvo::tools {

/// Times memcpy in this process, now. Results are kept, so each size is measured once a run.
class MemorySpeed {
 public:
  /// Median nanoseconds of one memcpy of `bytes`, out of source memory that no cache level holds.
  [[nodiscard]] double memcpy_nanoseconds(std::uint64_t bytes);

 private:
  std::map<std::uint64_t, double> known_;
};

}  // namespace kvo::tools
