// Replaces operator new, so that the allocation gate can count, limit, fill and fail what caches
// ask for.
//
// Outside a call of a cache the gate is closed and this is malloc. The sanitizers see every block,
// because malloc is theirs.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "reference/contract/subject/probe.hpp"
#include "reference/contract/values/sanitizers.hpp"

namespace {

constexpr int kFill = 0xfe;

#ifdef KVO_SANITIZED
bool fits_heap(std::size_t bytes) {
  constexpr std::size_t kSmall = std::size_t{16} << 10U;  // to ask costs more than these are worth
  const std::size_t limit = kvo::heap_limit_bytes.load(std::memory_order_relaxed);
  if (limit == 0 || bytes < kSmall) return true;
  return bytes <= limit && __sanitizer_get_current_allocated_bytes() <= limit - bytes;
}
#else
bool fits_heap(std::size_t /*bytes*/) {
  return true;
}
#endif

// False when this allocation must fail.
bool allowed(std::size_t bytes) {
  if (!fits_heap(bytes)) return false;
  kvo::AllocationGate& gate = kvo::allocation_gate;
  if (!gate.open) return true;
  ++gate.count;
  if (bytes > gate.limit_bytes) {
    gate.refused_bytes = bytes;
    return false;
  }
  if (gate.fail_at < 0) return true;
  return gate.fail_at-- != 0;
}

void* filled(void* memory, std::size_t bytes) {
  const kvo::AllocationGate& gate = kvo::allocation_gate;
  if (gate.open && memory != nullptr) std::memset(memory, kFill, std::min(bytes, gate.fill_bytes));
  return memory;
}

// Behind what is filled stand zeros, which the kernel has at no cost: what a subject reads that
// nobody wrote is alike in every run.
void* with_known_bytes(std::size_t bytes) {
  const kvo::AllocationGate& gate = kvo::allocation_gate;
  const bool all_filled = !gate.open || gate.fill_bytes == 0 || bytes <= gate.fill_bytes;
  return all_filled ? std::malloc(bytes == 0 ? 1 : bytes) : std::calloc(bytes, 1);
}

void* allocate(std::size_t bytes) {
  if (!allowed(bytes)) throw std::bad_alloc();
  void* memory = with_known_bytes(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return filled(memory, bytes);
}

void* allocate_aligned(std::size_t bytes, std::align_val_t alignment) {
  if (!allowed(bytes)) throw std::bad_alloc();
  const auto align = static_cast<std::size_t>(alignment);
  void* memory = std::aligned_alloc(align, (bytes + align - 1) / align * align);
  if (memory == nullptr) throw std::bad_alloc();
  return filled(memory, bytes);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_aligned(bytes, alignment);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate_aligned(bytes, alignment);
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return allowed(bytes) ? filled(with_known_bytes(bytes), bytes) : nullptr;
}
void* operator new[](std::size_t bytes, const std::nothrow_t& tag) noexcept {
  return operator new(bytes, tag);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*b*/, std::align_val_t /*a*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*b*/, std::align_val_t /*a*/) noexcept {
  std::free(memory);
}
