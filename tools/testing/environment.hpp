// tools/testing/environment.hpp: settings of tests and of the programs that they start. CTest hands
// no options to a test.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace kvo::tools {

/// The value of an environment variable, empty without one.
[[nodiscard]] inline std::string text_in_environment(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

[[nodiscard]] inline std::uint64_t number_in_environment(const char* name,
                                                         std::uint64_t otherwise) {
  const std::string text = text_in_environment(name);
  return text.empty() ? otherwise : std::strtoull(text.c_str(), nullptr, 10);
}

}  // namespace kvo::tools
