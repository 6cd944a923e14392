// reference/contract/values/sanitizers.hpp: which sanitizer watches. Compilers say so in words of
// their own; here KVO_ADDRESS_SANITIZER is the address sanitizer and KVO_SANITIZED that or the one
// of threads.
#pragma once

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#define KVO_ADDRESS_SANITIZER 1
#endif
#ifdef __SANITIZE_THREAD__
#define KVO_SANITIZED 1
#endif
#ifdef __has_feature
#if __has_feature(address_sanitizer) && !defined(KVO_ADDRESS_SANITIZER)
#define KVO_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer) && !defined(KVO_SANITIZED)
#define KVO_SANITIZED 1
#endif
#endif

#ifdef KVO_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#define KVO_SANITIZED 1
#endif
#ifdef KVO_SANITIZED
// Of their runtime; gcc has no header for it.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();  // NOLINT: their name
#endif
