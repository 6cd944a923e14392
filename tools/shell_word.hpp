// tools/shell_word.hpp: words of commands that are printed for a shell.
#pragma once

#include <string>

namespace kvo::tools {

/// `word` as a shell reads it as one word: in quotes where it must be.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace kvo::tools
