// tools/tidy/tree.hpp: the sources of the tree, read so that rules can be asked of them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace kvo::tidy {

using Lines = std::vector<std::string>;
/// Places that break a rule, each written `file:line: what`.
using Complaints = std::vector<std::string>;

/// A C++ file in four readings, line by line. What a reading leaves out is blank.
struct Source {
  std::string path;  ///< from the root, with '/'
  Lines lines;       ///< as it is
  Lines code;        ///< without comments
  Lines bare;        ///< without comments and without the inside of literals
  Lines words;       ///< without the inside of literals
};

struct Build {
  std::string folder;  ///< from the root, with '/' at the end; empty for the root
  std::string text;    ///< of its CMakeLists.txt, without comments
};

struct Tree {
  std::vector<Source> sources;  ///< in order of path
  std::vector<Build> builds;
};

[[nodiscard]] Source source(std::string path, const std::string& text);
[[nodiscard]] Build build(std::string folder, const std::string& text);

/// Only the rooms are read: nothing built, nothing hidden.
[[nodiscard]] Tree read_tree(const std::filesystem::path& root);

/// Whether the path begins with the folder of a room.
[[nodiscard]] bool is_in_a_room(const std::string& path);

[[nodiscard]] std::string complaint(const Source& source, std::size_t line_index,
                                    std::string_view what);

/// Calls visit(source, line index, first capture of the match) for each line that matches. Only
/// lines that have `word` in them are matched: the pattern by itself would take minutes.
template <class Visit>
void each_match(const Tree& tree, Lines Source::*reading, std::string_view word,
                const std::regex& pattern, const Visit& visit) {
  for (const Source& source : tree.sources) {
    const Lines& lines = source.*reading;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::smatch match;
      if (lines[i].find(word) == std::string::npos) continue;
      if (std::regex_search(lines[i], match, pattern)) visit(source, i, match[1].str());
    }
  }
}

}  // namespace kvo::tidy
