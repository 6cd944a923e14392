// tools/text_file.hpp: a result that somebody else reads, in a file.
#pragma once

#include <string>
#include <string_view>

namespace kvo::tools {

/// Standard output, where a file's name is expected.
inline constexpr std::string_view kStandardOutput = "-";

/// Writes `text` to `path`, whole or not at all, or to standard output for "-".
/// Throws FileError when the file cannot be written.
void write_text_file(const std::string& path, std::string_view text);

}  // namespace kvo::tools
