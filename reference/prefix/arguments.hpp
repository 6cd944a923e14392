// reference/prefix/arguments.hpp: what sessions refuse before a cache is asked.
#pragma once

#include <cstdint>
#include <string>

#include "reference/prefix/cache.hpp"

namespace kvo::prefix {

/// Errors  kPrecondition: below 0 or beyond kMostTokens.
[[nodiscard]] inline Status check_count(const char* name, std::int64_t value) {
  if (value >= 0 && value <= kMostTokens) return {};
  return fail(Code::kPrecondition, std::string(name) + ": " + std::to_string(value));
}

/// Errors  kOutOfRange: a number of the list is outside [begin, end).
[[nodiscard]] inline Status check_numbers(const char* name, NumbersView numbers, std::int64_t begin,
                                          std::int64_t end) {
  for (const std::int64_t number : numbers)
    if (number < begin || number >= end)
      return fail(Code::kOutOfRange, std::string(name) + ": " + std::to_string(number));
  return {};
}

}  // namespace kvo::prefix
