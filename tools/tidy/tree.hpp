// tools/tidy/tree.hpp: the sources of the tree, read once for all rules.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kvo::tidy {

using Lines = std::vector<std::string>;
/// Places that break a rule, each written `file:line: what`.
using Complaints = std::vector<std::string>;

struct Include {
  std::size_t line_index;
  bool quoted;  ///< in "", not in <>
  std::string path;
};

/// A C++ file in three readings, line by line. What a reading leaves out is blank.
struct Source {
  std::string path;  ///< from the root, with '/'
  Lines lines;       ///< as it is
  Lines bare;        ///< without comments and without the inside of literals
  Lines words;       ///< without the inside of literals
  std::vector<Include> includes;
};

struct Build {
  std::string folder;           ///< from the root, with '/' at the end; empty for the root
  std::set<std::string> words;  ///< of its CMakeLists.txt, without comments and `${VARIABLE}/`
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

}  // namespace kvo::tidy
