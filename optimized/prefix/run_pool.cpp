#include "optimized/prefix/run_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace kvo::optimized {
namespace {

constexpr std::size_t kLeastLog = 3;

}  // namespace

RunPool::~RunPool() {
  for (std::byte*& first : kept_)
    while (first != nullptr) {
      std::byte* next = nullptr;
      std::memcpy(&next, first, sizeof next);
      ::operator delete(first);
      first = next;
    }
}

Run RunPool::kept(std::size_t size_log, std::size_t units) noexcept {
  std::byte* const memory = kept_[size_log];
  std::memcpy(&kept_[size_log], memory, sizeof(std::byte*));
  return {.memory = memory, .units = units, .size_log = static_cast<std::uint8_t>(size_log)};
}

Run RunPool::take(std::size_t units) {
  const std::size_t size_log =
      std::max<std::size_t>(kLeastLog, static_cast<std::size_t>(std::bit_width(units - 1)));
  if (size_log >= kSizes) throw std::bad_alloc();
  if (kept_[size_log] != nullptr) return kept(size_log, units);
  const std::size_t bytes =
      (std::size_t{1} << size_log) * (sizeof(std::int64_t) + sizeof(prefix::Token)) +
      sizeof(prefix::Token);
  try {
    return {.memory = static_cast<std::byte*>(::operator new(bytes)),
            .units = units,
            .size_log = static_cast<std::uint8_t>(size_log)};
  } catch (const std::bad_alloc&) {
    for (std::size_t larger = size_log + 1; larger < kSizes; ++larger)
      if (kept_[larger] != nullptr) return kept(larger, units);
    throw;
  }
}

void RunPool::give(Run& run) noexcept {
  if (run.memory == nullptr) return;
  std::memcpy(run.memory, &kept_[run.size_log], sizeof(std::byte*));
  kept_[run.size_log] = run.memory;
  run = {};
}

}  // namespace kvo::optimized
