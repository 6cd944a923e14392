// tools/version.hpp: the version that `--version` and run files show.
#pragma once

#include <string_view>

namespace kvo::tools {

inline constexpr std::string_view kVersion = KVO_VERSION;  ///< set by the build

}  // namespace kvo::tools
