#include <algorithm>
#include <cctype>

#include "tools/tidy/rules.hpp"

namespace kvo::tidy {
namespace {

constexpr std::size_t kMaxColumns = 100;
constexpr std::size_t kMaxLines = 500;

/// Whether the build file writes the source out, relative to its own folder.
bool names(const Build& build, const std::string& path) {
  if (!path.starts_with(build.folder)) return false;
  const std::string name = path.substr(build.folder.size());
  const auto ends_here = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = build.text.find(name); at != std::string::npos;
       at = build.text.find(name, at + 1)) {
    const char before = at == 0 ? ' ' : build.text[at - 1];
    const char behind = at + name.size() < build.text.size() ? build.text[at + name.size()] : ' ';
    const bool begins = ends_here(before) || before == '(' || before == '"' ||
                        (before == '/' && at > 1 && build.text[at - 2] == '}');
    if (begins && (ends_here(behind) || behind == ')' || behind == '"')) return true;
  }
  return false;
}

struct Banned {
  std::string word;
  std::string pattern;
  Lines Source::*reading;
  std::string why;
};

const std::vector<Banned>& banned() {
  static const std::string kUnfinished = "finish it or leave it out";
  static const std::vector<Banned> kTable{
      {"catch", R"(catch\s*\(\s*\.\.\.\s*\))", &Source::bare,
       "swallows verdicts: name what is caught"},
      {"namespace", R"(\busing\s+namespace\b)", &Source::bare, "name what is used"},
      {"rand", R"(\bstd\s*::\s*s?rand\b)", &Source::bare, "use a seeded engine"},
      {"getenv", R"(\bgetenv\b)", &Source::bare, "use an option"},
      {"assert", R"(\bassert\s*\()", &Source::bare, "use KVO_CHECK, which is on in every build"},
      {"FIXME", R"(\bFIXME\b)", &Source::words, kUnfinished},
      {"TODO", R"(\bTODO\b)", &Source::words, kUnfinished},
      {"XXX", R"(\bXXX\b)", &Source::words, kUnfinished},
  };
  return kTable;
}

}  // namespace

Complaints long_lines(const Tree& tree) {
  Complaints found;
  for (const Source& source : tree.sources) {
    for (std::size_t i = 0; i < source.lines.size(); ++i) {
      const std::string& line = source.lines[i];
      const auto columns = std::count_if(line.begin(), line.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // A character of UTF-8 begins.
      });
      if (static_cast<std::size_t>(columns) > kMaxColumns) {
        found.push_back(complaint(source, i, std::to_string(columns) + " columns"));
      }
    }
  }
  return found;
}

Complaints long_files(const Tree& tree) {
  Complaints found;
  for (const Source& source : tree.sources) {
    if (source.lines.size() > kMaxLines) {
      found.push_back(complaint(source, kMaxLines, std::to_string(source.lines.size()) + " lines"));
    }
  }
  return found;
}

Complaints sources_in_no_target(const Tree& tree) {
  Complaints found;
  for (const Source& source : tree.sources) {
    if (!source.path.ends_with(".cpp") && !source.path.ends_with(".cu")) continue;
    const auto names_it = [&source](const Build& build) { return names(build, source.path); };
    if (std::none_of(tree.builds.begin(), tree.builds.end(), names_it)) {
      found.push_back(complaint(source, 0, "in no CMakeLists.txt"));
    }
  }
  return found;
}

Complaints banned_words(const Tree& tree) {
  Complaints found;
  for (const Banned& banned_word : banned()) {
    each_match(tree, banned_word.reading, banned_word.word, std::regex(banned_word.pattern),
               [&](const Source& source, std::size_t line, const std::string& /*capture*/) {
                 found.push_back(complaint(source, line, "banned, " + banned_word.why));
               });
  }
  return found;
}

}  // namespace kvo::tidy
