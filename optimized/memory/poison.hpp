// optimized/memory/poison.hpp: tells the address sanitizer what is held back and nobody may touch.
#pragma once

#include <cstddef>

#include "reference/contract/values/sanitizers.hpp"

namespace kvo::optimized {

#ifdef KVO_ADDRESS_SANITIZER
/// What touches these bytes is reported, until they are unpoisoned or given back to the allocator.
/// The sanitizer counts in words: `begin + bytes` should be a multiple of 8.
inline void poison(const void* begin, std::size_t bytes) {
  ASAN_POISON_MEMORY_REGION(begin, bytes);
}
/// They may be used again.
inline void unpoison(const void* begin, std::size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
}
#else
inline void poison(const void* /*begin*/, std::size_t /*bytes*/) {}
inline void unpoison(const void* /*begin*/, std::size_t /*bytes*/) {}
#endif

}  // namespace kvo::optimized
