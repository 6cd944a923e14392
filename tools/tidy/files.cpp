#include <algorithm>
#include <regex>

#include "tools/tidy/rules.hpp"

namespace kvo::tidy {
namespace {

constexpr std::ptrdiff_t kMaxColumns = 100;
constexpr std::size_t kMaxLines = 500;

struct Banned {
  std::string word;  ///< a line without it is not matched: the pattern by itself takes too long
  std::regex pattern;
  Lines Source::*reading;
  std::string why;
};

const std::vector<Banned>& banned() {
  static const std::string kUnfinished = "finish it or leave it out";
  static const std::vector<Banned> kTable{
      {"catch", std::regex(R"(catch\s*\(\s*\.\.\.\s*\))"), &Source::bare,
       "swallows verdicts: name what is caught"},
      {"namespace", std::regex(R"(\busing\s+namespace\b)"), &Source::bare, "name what is used"},
      {"rand", std::regex(R"(\bstd\s*::\s*s?rand\b)"), &Source::bare, "use a seeded engine"},
      {"getenv", std::regex(R"(\bgetenv\b)"), &Source::bare, "use an option"},
      {"assert", std::regex(R"(\bassert\s*\()"), &Source::bare,
       "use KVO_CHECK, which is on in every build"},
      {"FIXME", std::regex(R"(\bFIXME\b)"), &Source::words, kUnfinished},
      {"TODO", std::regex(R"(\bTODO\b)"), &Source::words, kUnfinished},
      {"XXX", std::regex(R"(\bXXX\b)"), &Source::words, kUnfinished},
  };
  return kTable;
}

}  // namespace

Complaints long_lines(const Tree& tree) {
  const auto begins_character = [](char c) {  // of UTF-8
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  };
  Complaints found;
  for (const Source& source : tree.sources)
    for (std::size_t i = 0; i < source.lines.size(); ++i) {
      const auto columns = std::ranges::count_if(source.lines[i], begins_character);
      if (columns > kMaxColumns)
        found.push_back(complaint(source, i, std::to_string(columns) + " columns"));
    }
  return found;
}

Complaints long_files(const Tree& tree) {
  Complaints found;
  for (const Source& source : tree.sources)
    if (source.lines.size() > kMaxLines)
      found.push_back(complaint(source, kMaxLines, std::to_string(source.lines.size()) + " lines"));
  return found;
}

Complaints sources_in_no_target(const Tree& tree) {
  Complaints found;
  for (const Source& source : tree.sources) {
    if (!source.path.ends_with(".cpp") && !source.path.ends_with(".cu")) continue;
    const auto names_it = [&path = source.path](const Build& build) {
      return path.starts_with(build.folder) &&
             build.words.contains(path.substr(build.folder.size()));
    };
    if (std::ranges::none_of(tree.builds, names_it))
      found.push_back(complaint(source, 0, "in no CMakeLists.txt"));
  }
  return found;
}

Complaints banned_words(const Tree& tree) {
  Complaints found;
  for (const Banned& row : banned())
    for (const Source& source : tree.sources) {
      const Lines& lines = source.*row.reading;
      for (std::size_t i = 0; i < lines.size(); ++i)
        if (lines[i].find(row.word) != std::string::npos &&
            std::regex_search(lines[i], row.pattern))
          found.push_back(complaint(source, i, "banned, " + row.why));
    }
  return found;
}

}  // namespace kvo::tidy
