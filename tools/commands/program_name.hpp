// tools/commands/program_name.hpp: what printed commands begin with, and their version.
#pragma once

#include <string>
#include <string_view>

namespace kvo::tools {

inline constexpr std::string_view kVersion = KVO_VERSION;  ///< set by the build

/// "kvoracle", or the name of a program of one's own that has its commands: to be set before any
/// thread is started.
[[nodiscard]] inline std::string& program_name() {
  static std::string name = "kvoracle";
  return name;
}

}  // namespace kvo::tools
