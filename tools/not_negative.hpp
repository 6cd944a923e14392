// tools/not_negative.hpp: a check for options that count something.
#pragma once

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

}  // namespace kvo::tools
