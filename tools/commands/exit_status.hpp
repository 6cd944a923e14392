// tools/commands/exit_status.hpp: what the exit status of `kvoracle` means. Scripts rely on these
// numbers.
#pragma once

namespace kvo::tools {

inline constexpr int kExitConforms = 0;       ///< everything agreed
inline constexpr int kExitDiffers = 1;        ///< a mismatch, an invalid trace
inline constexpr int kExitUsage = 2;          ///< bad usage, unreadable input, unwritable output
inline constexpr int kExitCrashed = 3;        ///< a subject crashed or hung
inline constexpr int kExitHarness = 4;        ///< a fault of the harness itself
inline constexpr int kExitInterrupted = 130;  ///< SIGINT or SIGTERM; what was found had been told

}  // namespace kvo::tools
