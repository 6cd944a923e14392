#include "tools/tidy/tree.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <utility>

namespace kvo::tidy {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kRooms{"reference",  "optimized", "cuda",    "traces",
                                                 "properties", "tools",     "examples"};

Lines split(const std::string& text) {
  std::istringstream in(text);
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The end of the comment that begins at `at`, or `at` if none does.
std::size_t end_of_comment(const std::string& text, std::size_t at) {
  if (text.compare(at, 2, "//") == 0) return std::min(text.find('\n', at), text.size());
  if (text.compare(at, 2, "/*") == 0) return std::min(text.find("*/", at + 2), text.size() - 2) + 2;
  return at;
}

/// The last character of the literal that begins at `at`, or `at` if none does.
std::size_t last_of_literal(const std::string& text, std::size_t at) {
  if (text.compare(at, 2, "R\"") == 0) {
    const std::size_t open = std::min(text.find('(', at), text.size());
    const std::string close = ")" + text.substr(at + 2, open - at - 2) + "\"";
    return std::min(text.find(close, open), text.size() - close.size()) + close.size() - 1;
  }
  const bool separates_digits =
      at > 0 && std::isxdigit(static_cast<unsigned char>(text[at - 1])) != 0;  // as in 1'000
  if (text[at] != '"' && (text[at] != '\'' || separates_digits)) return at;
  for (std::size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == text[at]) return i;
    if (text[i] == '\\') ++i;
  }
  return at;  // Not a literal after all, such as an apostrophe behind #error.
}

void blank(std::string& text, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i)
    if (text[i] != '\n') text[i] = ' ';
}

std::vector<Include> includes(const Source& source) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*([<"])([^">]+)[">])re");
  std::vector<Include> found;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    std::smatch match;
    if (source.bare[i].find("include") != std::string::npos &&
        std::regex_search(source.lines[i], match, kInclude))
      found.push_back({i, match[1] == "\"", match[2]});
  }
  return found;
}

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

Source source(std::string path, const std::string& text) {
  std::string bare = text;
  std::string words = text;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t after_comment = end_of_comment(text, at);
    const std::size_t last = last_of_literal(text, at);
    blank(bare, at, after_comment);
    for (std::string* reading : {&bare, &words}) blank(*reading, at + 1, last);
    at = std::max(after_comment, last + 1);
  }
  Source made{.path = std::move(path),
              .lines = split(text),
              .bare = split(bare),
              .words = split(words),
              .includes = {}};
  made.includes = includes(made);
  return made;
}

Build build(std::string folder, const std::string& text) {
  static const std::regex kLeftOut(R"(#.*|\$\{\w+\}/)");
  static const std::regex kWord(R"re([^\s()"]+)re");
  const std::string rest = std::regex_replace(text, kLeftOut, "");
  return {.folder = std::move(folder),
          .words = {std::sregex_token_iterator(rest.begin(), rest.end(), kWord), {}}};
}

Tree read_tree(const fs::path& root) {
  static const std::set<std::string> kEndings{".hpp", ".cpp", ".cuh", ".cu"};
  Tree tree;
  tree.builds.push_back(build("", read(root / "CMakeLists.txt")));
  for (const std::string_view room : kRooms) {
    if (!fs::is_directory(root / room)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / room)) {
      const fs::path path = entry.path().lexically_relative(root);
      if (kEndings.contains(path.extension()))
        tree.sources.push_back(source(path.generic_string(), read(entry.path())));
      else if (path.filename() == "CMakeLists.txt")
        tree.builds.push_back(build(path.parent_path().generic_string() + "/", read(entry.path())));
    }
  }
  std::ranges::sort(tree.sources, {}, &Source::path);
  return tree;
}

std::string complaint(const Source& source, std::size_t line_index, std::string_view what) {
  return source.path + ":" + std::to_string(line_index + 1) + ": " + std::string(what);
}

bool is_in_a_room(const std::string& path) {
  return std::ranges::any_of(
      kRooms, [&path](std::string_view room) { return path.starts_with(std::string(room) + "/"); });
}

}  // namespace kvo::tidy
