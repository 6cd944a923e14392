// Replaces operator new, so that the allocation gate can count, limit and fail what caches ask for.
//
// Outside a call of a cache the gate is closed and this is malloc. The sanitizers see every block,
// because malloc is theirs.
#include <cstdlib>
#include <new>

#include "reference/contract/subject/probe.hpp"

namespace {

// False when this allocation must fail.
bool allowed(std::size_t bytes) {
  kvo::AllocationGate& gate = kvo::allocation_gate;
  if (!gate.open) return true;
  ++gate.count;
  if (bytes > gate.limit_bytes) return false;
  if (gate.fail_at < 0) return true;
  return gate.fail_at-- != 0;
}

void* allocate(std::size_t bytes) {
  if (!allowed(bytes)) throw std::bad_alloc();
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* allocate_aligned(std::size_t bytes, std::align_val_t alignment) {
  if (!allowed(bytes)) throw std::bad_alloc();
  const auto align = static_cast<std::size_t>(alignment);
  void* memory = std::aligned_alloc(align, (bytes + align - 1) / align * align);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
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
  return allowed(bytes) ? std::malloc(bytes == 0 ? 1 : bytes) : nullptr;
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
