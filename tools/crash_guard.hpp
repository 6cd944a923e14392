// tools/crash_guard.hpp: a crash of the harness itself ends the command with kExitHarness and one
// line. Subjects run in processes of their own (tools/child.hpp), where it is not installed.
#pragma once

namespace kvo::tools {

/// Catches SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, and a stack of this thread that overflows.
/// For the whole process; call it first in main. Sanitizers catch these themselves and say more.
void install_crash_guard();

/// In a process forked from this one: a crash is left to whoever waits for the process.
void forget_crash_guard();

}  // namespace kvo::tools
