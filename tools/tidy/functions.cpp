#include <optional>
#include <regex>

#include "tools/tidy/rules.hpp"

namespace kvo::tidy {
namespace {

constexpr std::size_t kMaxBody = 70;

/// Whether the brace at the end of the line, where clang-format leaves it, begins a function (or a
/// lambda outside any): `f() const {`, `-> A {`, `C() : a_(1) {`, `b_{2} {`.
bool begins_a_function(const std::string& line) {
  static const std::regex kHead(
      R"((\)(\s+(const|noexcept|mutable|override|final|&+))*(\s+(->|:|requires)\s.*)?)"
      R"(|^\s*->.*|\})\s*\{\s*$)");
  const std::size_t last = line.find_last_not_of(' ');
  return last != std::string::npos && line[last] == '{' && std::regex_search(line, kHead);
}

/// Calls visit(line index of the first brace, lines between the braces) for every function;
/// functions and lambdas inside are part of it.
template <class Visit>
void each_function(const Lines& bare, const Visit& visit) {
  int depth = 0;
  int inside = 0;  ///< the depth in the function that has begun
  std::optional<std::size_t> begin;
  bool directive = false;  ///< of the preprocessor: its braces need not match
  for (std::size_t i = 0; i < bare.size(); ++i) {
    const std::size_t first = bare[i].find_first_not_of(' ');
    directive = (directive && bare[i - 1].ends_with('\\')) ||
                (first != std::string::npos && bare[i][first] == '#');
    if (directive) continue;
    for (const char c : bare[i]) {
      if (c == '{') ++depth;
      if (c == '}' && --depth < inside && begin) {
        visit(*begin, i - *begin - 1);
        begin.reset();
      }
    }
    if (!begin && begins_a_function(bare[i])) {
      begin = i;
      inside = depth;
    }
  }
}

void errors_not_told_in(const Source& source, Complaints& found) {
  static const std::regex kComment(R"(^\s*//)");
  static const std::regex kClass(R"(^\s*class\s+\w+[^;]*$)");
  static const std::regex kSection(R"(^\s*(public|protected|private):)");
  static const std::regex kCanFail(R"(\bvirtual\s+(kvo::)?(Status|Result)\b)");
  static const std::regex kConst(R"(\)\s*const\b)");
  bool told = false;  ///< by the comment that ends in the line above
  bool told_by_class = false;
  bool is_public = false;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    const std::string& line = source.bare[i];
    std::smatch section;
    if (std::regex_search(source.lines[i], kComment)) {
      told = told || source.lines[i].find("Errors") != std::string::npos;
      continue;
    }
    if (std::regex_search(line, kClass)) {
      told_by_class = told;
      is_public = false;
    } else if (std::regex_search(line, section, kSection)) {
      is_public = section[1] == "public";
    } else if (is_public && !told && !told_by_class && std::regex_search(line, kCanFail)) {
      std::string declared = line;
      for (std::size_t next = i + 1;
           next < source.bare.size() && declared.find_first_of(";{") == std::string::npos; ++next)
        declared += source.bare[next];
      if (!std::regex_search(declared, kConst))
        found.push_back(complaint(source, i, "a virtual that may fail does not tell its Errors"));
    }
    told = false;
  }
}

}  // namespace

Complaints long_functions(const Tree& tree) {
  Complaints found;
  for (const Source& source : tree.sources)
    each_function(source.bare, [&](std::size_t line, std::size_t lines) {
      if (lines > kMaxBody)
        found.push_back(
            complaint(source, line, "a function of " + std::to_string(lines) + " lines"));
    });
  return found;
}

Complaints errors_not_told(const Tree& tree) {
  Complaints found;
  for (const Source& source : tree.sources)
    if (is_cache_header(source.path)) errors_not_told_in(source, found);
  return found;
}

}  // namespace kvo::tidy
