#include "tools/benchmarks/limit_memory.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace kvo::tools {
namespace {

constexpr std::size_t kFrom = std::size_t{8} << 20U;
constexpr std::size_t kLeastBytes = std::size_t{64} << 10U;
constexpr std::size_t kMostBytes = std::size_t{256} << 20U;

// What is copied: lies near to the processor, as arguments that were just made.
std::byte* copied_from() {
  static std::vector<std::byte> memory(kFrom, std::byte{1});
  return memory.data();
}

template <class Call>
std::uint64_t scaled_nanoseconds(std::size_t bytes, std::size_t size, const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
  return static_cast<std::uint64_t>(spent.count() * static_cast<double>(bytes) /
                                    static_cast<double>(size));
}

}  // namespace

LimitMemory::LimitMemory(std::size_t bytes, bool touched)
    : size_(std::clamp(bytes, kLeastBytes, kMostBytes)) {
  void* mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  (void)::madvise(mapped, size_, MADV_HUGEPAGE);
#endif
  to_ = {static_cast<std::byte*>(mapped), Unmap{size_}};
  if (touched) std::memset(to_.get(), 1, size_);
}

void LimitMemory::Unmap::operator()(std::byte* memory) const {
  (void)::munmap(memory, size);
}

std::byte* LimitMemory::next(std::size_t bytes) {
  if (at_ + bytes > size_) at_ = 0;
  return to_.get() + std::exchange(at_, at_ + bytes);
}

std::uint64_t LimitMemory::copied(std::size_t bytes) {
  const std::size_t size = std::min({bytes, kFrom, size_});
  const std::byte* from = copied_from();
  std::byte* to = next(size);
  return scaled_nanoseconds(bytes, size, [&] {
    std::memcpy(to, from, size);
    asm volatile("" : : "r"(to) : "memory");
  });
}

std::uint64_t LimitMemory::cleared(std::size_t bytes) {
  const std::size_t size = std::min(bytes, size_);
  std::byte* to = next(size);
  return scaled_nanoseconds(bytes, size, [&] {
    std::memset(to, 0, size);
    asm volatile("" : : "r"(to) : "memory");
  });
}

}  // namespace kvo::tools
