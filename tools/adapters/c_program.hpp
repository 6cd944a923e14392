// tools/adapters/c_program.hpp: a failing script as a program in C.
#pragma once

#include <string>

#include "reference/contract/subject/subject.hpp"
#include "traces/log/kvlog.hpp"

namespace kvo::tools {

/// A program of C, and of C++, that calls a cache through the functions of kvoracle.h, which it has
/// a copy of. Its status is 1 if the last operation does not return `want`. `heading`: a comment at
/// its head.
[[nodiscard]] std::string c_program(const traces::Case& failing, const Setup& setup,
                                    const Observation& want, const std::string& heading);

}  // namespace kvo::tools
