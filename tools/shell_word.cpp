#include "tools/shell_word.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace kvo::tools {

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "@%+=:,./-_";
  const bool plain = !word.empty() && std::ranges::all_of(word, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != kPlain.npos;
  });
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace kvo::tools
