// tools/serving/serve.hpp: the other end of a Process: the life of what was forked.
#pragma once

#include "tools/serving/process.hpp"

namespace kvo::tools {

/// Ends of pipes that a process has to itself.
struct Pipes {
  int requests = -1;
  int answers = -1;
  int errors = -1;
};

/// Frees the process of what is its parent's (descriptors, signals, terminal, standard input), sets
/// its limits, and answers requests until no more come. Never returns, not by an exception either:
/// the stack below is that of its parent.
[[noreturn]] void serve(const Pipes& pipes, const Framing& framing, const Limits& limits,
                        SharedPage& page, const Process::Answer& answer) noexcept;

}  // namespace kvo::tools
