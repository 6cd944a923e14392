// tools/not_negative.hpp: a check for options that count something.
#pragma once

#include <cstdlib>
#include <string>

#include <CLI/CLI.hpp>

namespace kvo::tools {

/// Refuses a minus sign: CLI11 would read -1 as 2^64 - 1.
[[nodiscard]] inline CLI::Validator not_negative() {
  const auto check = [](const std::string& text) {
    return text.starts_with('-') ? text + " is below zero" : std::string();
  };
  return {check, ""};
}

/// Refuses zero and less in few words: CLI11's own check prints the largest number there is.
[[nodiscard]] inline CLI::Validator positive() {
  const auto check = [](const std::string& text) {
    const bool above = std::strtod(text.c_str(), nullptr) > 0;
    return above ? std::string() : text + " is not a number above zero";
  };
  return {check, ""};
}

}  // namespace kvo::tools
