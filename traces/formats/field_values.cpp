#include "traces/formats/field_values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

#include "traces/formats/request.hpp"

namespace kvo::traces {

namespace {

constexpr std::size_t kMicrosecondDigits = 6;
constexpr std::int64_t kMicrosecondsPerSecond = 1'000'000;
constexpr std::string_view kTooManyTokens = "larger than 2^40 tokens";

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Nothing if the digits stand for more than an int64.
std::optional<std::int64_t> value_of(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// Why `text`, which is not what was wanted, is no number of that kind.
std::string_view reason(std::string_view text, std::string_view if_other_number) {
  if (text.empty()) return "missing";
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc::invalid_argument || end != text.data() + text.size()) {
    return "not a number";
  }
  if (std::isnan(value) || std::isinf(value)) return "not a finite number";
  if (std::signbit(value)) return "below zero";
  return if_other_number;
}

}  // namespace

TraceResult<std::int64_t> parse_tokens(Place place, std::string_view field, std::string_view text) {
  if (!all_digits(text)) {
    return error_at(place, field, text, reason(text, "not a whole number"));
  }
  const auto value = value_of(text);
  if (!value || *value > kMaxTokens) return error_at(place, field, text, kTooManyTokens);
  return *value;
}

TraceResult<std::int64_t> parse_seconds_as_us(Place place, std::string_view field,
                                              std::string_view text) {
  const auto point = text.find('.');
  const auto whole = text.substr(0, point);
  const auto fraction = point == std::string_view::npos ? "0" : text.substr(point + 1);
  if (!all_digits(whole) || !all_digits(fraction)) {
    return error_at(place, field, text, reason(text, "not a plain decimal number"));
  }
  std::string micro(fraction.substr(0, kMicrosecondDigits));
  micro.resize(kMicrosecondDigits, '0');
  const auto seconds = value_of(whole);
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max() / kMicrosecondsPerSecond - 1;
  if (!seconds || *seconds > kMax) return error_at(place, field, text, "too large a time");
  return *seconds * kMicrosecondsPerSecond + *value_of(micro);
}

TraceResult<std::int64_t> check_tokens(Place place, std::string_view field, std::int64_t tokens) {
  if (tokens < 0) return error_at(place, field, std::to_string(tokens), "below zero");
  if (tokens > kMaxTokens) return error_at(place, field, std::to_string(tokens), kTooManyTokens);
  return tokens;
}

}  // namespace kvo::traces
