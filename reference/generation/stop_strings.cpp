#include "reference/generation/stop_strings.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace kvo::generation {
namespace {

/// Bytes of the character that a first byte begins; 1 for what begins none.
std::size_t length_of_character(unsigned char first) {
  if (first >= 0xf0 && first <= 0xf4) return 4;
  if (first >= 0xe0 && first <= 0xef) return 3;
  return first >= 0xc2 && first <= 0xdf ? 2 : 1;
}

/// Where the last character begins if it lacks bytes; else the end.
std::size_t end_of_characters(std::string_view text) {
  constexpr std::size_t kMostBehindFirst = 3;
  for (std::size_t behind = 1; behind <= std::min(kMostBehindFirst, text.size()); ++behind) {
    const auto byte = static_cast<unsigned char>(text[text.size() - behind]);
    if ((byte & 0xc0U) == 0x80U) continue;  // not a first one
    return length_of_character(byte) > behind ? text.size() - behind : text.size();
  }
  return text.size();
}

}  // namespace

std::optional<std::size_t> stop_in(std::string_view text, const std::vector<std::string>& stops,
                                   QuirkSet<Quirk> quirks) {
  std::optional<std::size_t> first;
  for (const std::string& stop : stops) {
    if (stop.empty() && !quirks.has(Quirk::kStopByListOrder)) continue;
    const std::size_t found = text.find(stop);
    if (found == std::string_view::npos) continue;
    if (quirks.has(Quirk::kStopByListOrder)) return found;
    first = std::min(first.value_or(found), found);
  }
  return first;
}

std::size_t settled(std::string_view text, const std::vector<std::string>& stops) {
  std::size_t end = end_of_characters(text);
  for (const std::string& stop : stops) {
    const std::size_t most = std::min(stop.size(), text.size() + 1);
    for (std::size_t length = 1; length < most; ++length)
      if (text.ends_with(std::string_view(stop).substr(0, length)))
        end = std::min(end, text.size() - length);
  }
  return end;
}

}  // namespace kvo::generation
