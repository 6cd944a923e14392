// tools/program_name.hpp: what printed commands begin with.
#pragma once

#include <string>

namespace kvo::tools {

/// "kvoracle", or the name of a program of one's own that has its commands.
[[nodiscard]] const std::string& program_name();
/// The last part of a path. To be called once, before any thread is started.
void set_program_name(const char* path);

}  // namespace kvo::tools
