// reference/contract/describe/utf8.hpp: any bytes as UTF-8, which JSON and XML are written in.
#pragma once

#include <string>
#include <string_view>

#include <boost/nowide/utf/utf.hpp>

namespace kvo {

/// The text with each byte that belongs to no character as "<0xe2>". Pieces of a text that do not
/// split its characters show joined what the whole shows.
[[nodiscard]] inline std::string valid_utf8(std::string_view text) {
  using Utf8 = boost::nowide::utf::utf_traits<char>;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string valid;
  for (const char* at = text.begin(); at != text.end();) {
    const char* const begin = at;
    const auto character = Utf8::decode(at, text.end());
    if (boost::nowide::utf::is_valid_codepoint(character)) {
      valid.append(begin, at);
      continue;
    }
    at = begin + 1;
    const auto byte = static_cast<unsigned char>(*begin);
    valid += std::string("<0x") + kDigits[byte >> 4U] + kDigits[byte & 0xfU] + '>';
  }
  return valid;
}

}  // namespace kvo
