#include "tools/testing/mutator.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "traces/io/test_files.hpp"

namespace kvo::tools {
namespace {

constexpr std::string_view kNumbers =
    "0 -0.0 1 -1 0.5 63 4096 16777216 16777217 250000000 2147483647 -2147483648 4294967296 "
    "1099511627776 4611686018427387904 9223372036854775807 -9223372036854775808 "
    "18446744073709551615 18446744073709551616 1e300 1e400 1e-400 null \"nan\"";

struct Part {
  std::size_t begin;
  std::size_t size;
};

// The longest runs of characters that `belongs` says.
template <class Belongs>
std::vector<Part> runs(std::string_view text, const Belongs& belongs) {
  std::vector<Part> found;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && belongs(text[end])) ++end;
    if (end > at) found.push_back({at, end - at});
    at = end + 1;
  }
  return found;
}

bool is_of_number(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '.';
}
bool is_of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const Part& line : runs(text, [](char c) { return c != '\n'; }))
    lines.push_back(text.substr(line.begin, line.size));
  return lines;
}

}  // namespace

std::string Mutator::mutated(std::string text) {
  // Most damage leaves a file that can be read, so that what it asks for is tried, too.
  for (std::uint64_t left = 1 + below(3); left > 0; --left) {
    const std::uint64_t kind = below(100);
    if (kind < 40)
      damage_lines(text);
    else if (kind < 85)
      damage_number(text);
    else if (kind < 93)
      damage_word(text);
    else
      damage_bytes(text);
  }
  return below(16) == 0 ? damaged_gzip(text) : text;
}

void Mutator::damage_lines(std::string& text) {
  std::vector<std::string> lines = lines_of(text);
  if (lines.empty()) return;
  const auto any = [&] { return static_cast<std::ptrdiff_t>(below(lines.size())); };
  const std::ptrdiff_t at = any();
  const auto line = lines.begin() + at;
  switch (below(10)) {
    case 0:
      line->resize(position(*line));
      break;
    case 1:
    case 2:
    case 3:
      lines.erase(line);
      break;
    case 4:
    case 5:
    case 6:
      lines.insert(lines.begin() + any(), std::string(*line));
      break;
    default:
      std::iter_swap(line, lines.begin() + any());
  }
  text.clear();
  for (const std::string& kept : lines) text += kept + "\n";
}

void Mutator::damage_bytes(std::string& text) {
  const std::size_t at = position(text);
  switch (below(4)) {
    case 0:
      text.insert(at, 1, static_cast<char>(below(256)));
      break;
    case 1:
      text.erase(at, below(30));
      break;
    case 2:
      text.insert(at, text.substr(position(text), below(60)));
      break;
    default:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
  }
}

void Mutator::damage_number(std::string& text) {
  static const std::vector<Part> kExtremes = runs(kNumbers, [](char c) { return c != ' '; });
  const std::vector<Part> numbers = runs(text, is_of_number);
  if (numbers.empty()) return;
  const Part& number = numbers[below(numbers.size())];
  const bool any = below(2) == 0;
  const Part& other = numbers[below(numbers.size())];
  if (!any) return void(text.replace(number.begin, number.size, text, other.begin, other.size));
  const Part& extreme = kExtremes[below(kExtremes.size())];
  text.replace(number.begin, number.size, kNumbers, extreme.begin, extreme.size);
}

void Mutator::damage_word(std::string& text) {
  const std::vector<Part> words = runs(text, is_of_word);
  if (words.empty()) return;
  const Part& word = words[below(words.size())];
  const Part& other = words[below(words.size())];
  const std::string with =
      below(2) == 0 ? text.substr(other.begin, other.size) : text.substr(word.begin, word.size - 1);
  text.replace(word.begin, word.size, with);
}

std::string Mutator::damaged_gzip(std::string_view text) {
  std::string packed = traces::test::gzipped(text);
  switch (below(4)) {
    case 0:
      packed.resize(position(packed));
      break;
    case 1:
      packed += static_cast<char>(below(256));
      break;
    case 2:
      packed += packed.substr(0, position(packed));
      break;
    default:
      const int bit = 1 << below(8);
      char& changed = packed[below(packed.size())];
      changed = static_cast<char>(changed ^ bit);
  }
  return packed;
}

}  // namespace kvo::tools
