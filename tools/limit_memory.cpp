#include "tools/limit_memory.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace kvo::tools {
namespace {

constexpr std::size_t kFrom = std::size_t{8} << 20U;
constexpr std::size_t kTo = std::size_t{256} << 20U;
constexpr std::size_t kAll = kFrom + kTo;

template <class Call>
std::uint64_t scaled_nanoseconds(std::size_t bytes, std::size_t size, const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
  return static_cast<std::uint64_t>(spent.count() * static_cast<double>(bytes) /
                                    static_cast<double>(size));
}

}  // namespace

LimitMemory::LimitMemory(bool touched) {
  void* mapped = ::mmap(nullptr, kAll, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  (void)::madvise(mapped, kAll, MADV_HUGEPAGE);
#endif
  from_ = static_cast<std::byte*>(mapped);
  to_ = from_ + kFrom;
  std::memset(from_, 1, touched ? kAll : kFrom);
}

LimitMemory::LimitMemory(LimitMemory&& other) noexcept
    : from_(std::exchange(other.from_, nullptr)), to_(other.to_), at_(other.at_) {}

LimitMemory::~LimitMemory() {
  if (from_ != nullptr) (void)::munmap(from_, kAll);
}

std::byte* LimitMemory::next(std::size_t bytes) {
  if (at_ + bytes > kTo) at_ = 0;
  return to_ + std::exchange(at_, at_ + bytes);
}

std::uint64_t LimitMemory::copied(std::size_t bytes) {
  const std::size_t size = std::min(bytes, kFrom);
  std::byte* to = next(size);
  return scaled_nanoseconds(bytes, size, [&] {
    std::memcpy(to, from_, size);
    asm volatile("" : : "r"(to) : "memory");
  });
}

std::uint64_t LimitMemory::cleared(std::size_t bytes) {
  const std::size_t size = std::min(bytes, kTo);
  std::byte* to = next(size);
  return scaled_nanoseconds(bytes, size, [&] {
    std::memset(to, 0, size);
    asm volatile("" : : "r"(to) : "memory");
  });
}

}  // namespace kvo::tools
