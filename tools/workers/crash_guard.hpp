// tools/workers/crash_guard.hpp: a crash of the harness itself ends the command with kExitHarness
// and one line. Subjects run in processes of their own (tools/workers), which have a handler of
// their own.
#pragma once

#include "reference/contract/values/sanitizers.hpp"

namespace kvo::tools {

/// Whether a sanitizer is linked, which says by itself how a process crashed.
#ifdef KVO_SANITIZED
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

/// Calls `handler` for each signal of which a process dies by itself, on a stack of its own where
/// that of this thread overflows. For the whole process. Sanitizers catch these themselves and say
/// more: does nothing with them.
void catch_crashes(void (*handler)(int number));

/// To be called first in main.
void install_crash_guard();

/// A crash is left to whoever waits for the process, or debugs it.
void forget_crash_guard();

}  // namespace kvo::tools
