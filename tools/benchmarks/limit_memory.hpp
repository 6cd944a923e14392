// tools/benchmarks/limit_memory.hpp: how long memcpy and memset take for as many bytes as a call
// moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kvo::tools {

/// Memory that is copied to and set round and round, in huge pages where the system gives them, as
/// a cache's may be.
class LimitMemory {
 public:
  /// `bytes`: as many as the cache goes round in, so that both are as near to the processor; at
  /// most 256 MiB. `touched`: copies meet no page for the first time; else each does until memory
  /// goes round. Throws std::bad_alloc.
  LimitMemory(std::size_t bytes, bool touched);

  /// Nanoseconds of a memcpy from memory that was read before. Requires  bytes > 0
  [[nodiscard]] std::uint64_t copied(std::size_t bytes);
  /// Nanoseconds of a memset. Requires  bytes > 0
  [[nodiscard]] std::uint64_t cleared(std::size_t bytes);

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* memory) const;
  };
  std::byte* next(std::size_t bytes);

  std::size_t size_;
  std::unique_ptr<std::byte[], Unmap> to_;  // NOLINT: an array as the system gives it
  std::size_t at_ = 0;
};

}  // namespace kvo::tools
