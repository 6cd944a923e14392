// reference/contract/describe/utf8.hpp: any bytes as UTF-8, which JSON and XML are written in.
#pragma once

#include <string>
#include <string_view>

#include <boost/nowide/utf/convert.hpp>

namespace kvo {

/// What is no UTF-8 is replaced by U+FFFD; the character behind it may go, too.
[[nodiscard]] inline std::string valid_utf8(std::string_view text) {
  return boost::nowide::utf::convert_string<char>(text.data(), text.data() + text.size());
}

}  // namespace kvo
