// tools/commands/not_negative.hpp: checks for options that count something.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>

namespace kvo::tools {

namespace detail {

/// The number, or nothing: empty, no number, or an integer of more than 64 bits, which CLI11 would
/// read as the largest there is.
inline std::optional<double> number_of(const std::string& text) {
  const char* end = text.data() + text.size();
  std::uint64_t integer = 0;
  const auto read = std::from_chars(text.data(), end, integer);
  if (read.ptr == end && read.ec == std::errc{} && !text.empty())
    return static_cast<double>(integer);
  if (read.ec == std::errc::result_out_of_range && read.ptr == end) return std::nullopt;
  char* behind = nullptr;
  const double number = std::strtod(text.c_str(), &behind);
  if (behind != end || text.empty() || !std::isfinite(number)) return std::nullopt;
  return number;
}

inline std::string no_number(const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return "'" + text + (digits ? "' is no number of at most 64 bits" : "' is no number");
}

/// Refuses, with the complaint behind the text, the numbers that are not allowed.
template <class Allowed>
CLI::Validator number_that(const Allowed& allowed, const char* complaint) {
  const auto check = [=](const std::string& text) {
    const auto number = number_of(text);
    if (!number) return no_number(text);
    return allowed(*number) ? std::string() : text + complaint;
  };
  return {check, ""};
}

}  // namespace detail

/// Refuses a minus sign: CLI11 would read -1 as 2^64 - 1.
[[nodiscard]] inline CLI::Validator not_negative() {
  return detail::number_that([](double number) { return !std::signbit(number); }, " is below zero");
}

/// Refuses zero and less in few words: CLI11's own check prints the largest number there is.
[[nodiscard]] inline CLI::Validator positive() {
  return detail::number_that([](double number) { return number > 0; },
                             " is not a number above zero");
}

/// Refuses what is no share: below 0 or above 100.
[[nodiscard]] inline CLI::Validator percent() {
  return detail::number_that([](double number) { return number >= 0 && number <= 100; },
                             " is not from 0 to 100");
}

}  // namespace kvo::tools
