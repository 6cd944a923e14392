// traces/formats/field_values.hpp: numbers written as text, read strictly.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/io/trace_error.hpp"

namespace kvo::traces {

/// A number of tokens from decimal digits, 0 to kMaxTokens.
/// Errors   empty, no number, not finite, below zero, with a fraction or exponent, too large
[[nodiscard]] TraceResult<std::int64_t> parse_tokens(Place place, std::string_view field,
                                                     std::string_view text);

/// Microseconds from decimal seconds such as "5" or "19440110.0"; digits beyond the sixth of the
/// fraction are cut off.
/// Errors   empty, no number, not finite, below zero, with an exponent, beyond 2^63 microseconds
[[nodiscard]] TraceResult<std::int64_t> parse_seconds_as_us(Place place, std::string_view field,
                                                            std::string_view text);

/// Checks a number of tokens that was already read: 0 to kMaxTokens.
/// Errors   below zero, too large
[[nodiscard]] TraceResult<std::int64_t> check_tokens(Place place, std::string_view field,
                                                     std::int64_t tokens);

}  // namespace kvo::traces
