// tools/tidy/tidy_test.cpp: the rules of the tree that a program can check.
//
// The tree is read once. Each rule is a function from that tree to the places that break it, each
// written `file:line: what`. The suite Tidy applies the rules to this very tree; the suite TidyRule
// feeds each rule something bad and sees it refused.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr std::size_t kMaxColumns = 100;
constexpr std::size_t kMaxLines = 600;
constexpr std::array<std::string_view, 7> kRooms{"reference",  "optimized", "cuda",    "traces",
                                                 "properties", "tools",     "examples"};

using Lines = std::vector<std::string>;
using Complaints = std::vector<std::string>;

/// A C++ file in three readings, line by line. What a reading leaves out is blank.
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
  std::vector<Source> sources;
  std::vector<Build> builds;
};

Lines split(const std::string& text) {
  Lines lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// Tells code from comments and literals, character by character.
class Scanner {
 public:
  explicit Scanner(const std::string& text)
      : text_(text), code_(blank(text)), bare_(code_), words_(code_) {
    while (at_ < text_.size()) step();
  }

  [[nodiscard]] Lines code() const { return split(code_); }
  [[nodiscard]] Lines bare() const { return split(bare_); }
  [[nodiscard]] Lines words() const { return split(words_); }

 private:
  static std::string blank(std::string text) {
    for (char& c : text) {
      if (c != '\n') c = ' ';
    }
    return text;
  }

  void step() {
    if (starts("//")) {
      comment_until(std::min(text_.find('\n', at_), text_.size()));
    } else if (starts("/*")) {
      comment_until(after("*/", at_ + 2));
    } else if (text_[at_] == '"' && at_ > 0 && text_[at_ - 1] == 'R') {
      const std::size_t open = std::min(text_.find('(', at_), text_.size());
      literal_until(after(")" + text_.substr(at_ + 1, open - at_ - 1) + "\"", open));
    } else if (text_[at_] == '"' || (text_[at_] == '\'' && !inside_number())) {
      literal_until(closing_quote());
    } else {
      code_[at_] = bare_[at_] = words_[at_] = text_[at_];
      ++at_;
    }
  }

  [[nodiscard]] bool starts(std::string_view what) const {
    return text_.compare(at_, what.size(), what) == 0;
  }

  [[nodiscard]] std::size_t after(std::string_view what, std::size_t from) const {
    const std::size_t found = text_.find(what, from);
    return found == std::string::npos ? text_.size() : found + what.size();
  }

  /// Whether the quote here separates digits, as in 1'000.
  [[nodiscard]] bool inside_number() const {
    std::size_t begin = at_;
    while (begin > 0 && is_word(text_[begin - 1])) --begin;
    return begin < at_ && std::isdigit(static_cast<unsigned char>(text_[begin])) != 0;
  }

  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '\'' || c == '.';
  }

  [[nodiscard]] std::size_t closing_quote() const {
    for (std::size_t i = at_ + 1; i < text_.size() && text_[i] != '\n'; ++i) {
      if (text_[i] == text_[at_]) return i + 1;
      if (text_[i] == '\\') ++i;
    }
    return at_ + 1;  // Not a literal after all, such as an apostrophe behind #error.
  }

  void comment_until(std::size_t end) {
    for (; at_ < end; ++at_) words_[at_] = text_[at_];
  }

  void literal_until(std::size_t end) {
    bare_[at_] = words_[at_] = text_[at_];
    bare_[end - 1] = words_[end - 1] = text_[end - 1];
    for (; at_ < end; ++at_) code_[at_] = text_[at_];
  }

  const std::string& text_;
  std::string code_;
  std::string bare_;
  std::string words_;
  std::size_t at_ = 0;
};

Source source(std::string path, const std::string& text) {
  const Scanner scanner(text);
  return {.path = std::move(path),
          .lines = split(text),
          .code = scanner.code(),
          .bare = scanner.bare(),
          .words = scanner.words()};
}

Build build(std::string folder, const std::string& text) {
  return {.folder = std::move(folder), .text = std::regex_replace(text, std::regex("#.*"), "")};
}

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_source(const fs::path& file) {
  static constexpr std::array<std::string_view, 4> kEndings{".hpp", ".cpp", ".cuh", ".cu"};
  return std::find(kEndings.begin(), kEndings.end(), file.extension().string()) != kEndings.end();
}

/// Only the rooms are read: nothing built, nothing hidden.
Tree read_tree(const fs::path& root) {
  Tree tree;
  if (fs::exists(root / "CMakeLists.txt")) {
    tree.builds.push_back(build("", read(root / "CMakeLists.txt")));
  }
  for (const std::string_view room : kRooms) {
    if (!fs::is_directory(root / room)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / room)) {
      if (!entry.is_regular_file()) continue;
      const fs::path path = entry.path().lexically_relative(root);
      if (is_source(path)) {
        tree.sources.push_back(source(path.generic_string(), read(entry.path())));
      } else if (path.filename() == "CMakeLists.txt") {
        tree.builds.push_back(build(path.parent_path().generic_string() + "/", read(entry.path())));
      }
    }
  }
  const auto by_path = [](const Source& a, const Source& b) { return a.path < b.path; };
  std::sort(tree.sources.begin(), tree.sources.end(), by_path);
  return tree;
}

std::string complaint(const Source& source, std::size_t line_index, std::string_view what) {
  return source.path + ":" + std::to_string(line_index + 1) + ": " + std::string(what);
}

/// Calls visit(source, line index, first capture of the match) for each line that matches.
template <class Visit>
void each_match(const Tree& tree, Lines Source::*reading, const std::regex& pattern,
                const Visit& visit) {
  for (const Source& source : tree.sources) {
    const Lines& lines = source.*reading;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::smatch match;
      if (std::regex_search(lines[i], match, pattern)) visit(source, i, match[1].str());
    }
  }
}

bool is_in_a_room(const std::string& path) {
  return std::any_of(kRooms.begin(), kRooms.end(), [&path](std::string_view room) {
    return path.starts_with(std::string(room) + "/");
  });
}

/// Who may include what. The first row that names the including file decides.
struct Arrow {
  std::string from;
  std::string to;
};

const std::vector<Arrow>& arrows() {
  static const std::string kContract =
      R"(reference/contract/.*|reference/[a-z0-9_]+/contract[a-z0-9_]*\.hpp)";
  static const std::vector<Arrow> kTable{
      // A contract that pulled in a cache would hand it to every room.
      {R"(reference/contract/.*\.hpp|reference/[a-z0-9_]+/contract[a-z0-9_]*\.hpp)", kContract},
      {"reference/.*", "reference/.*"},
      {"optimized/.*", kContract + "|optimized/.*"},
      {"cuda/.*", kContract + "|cuda/.*"},
      {"traces/.*", kContract + "|traces/.*"},
      {"properties/.*",
       R"(reference/.*|traces/.*|optimized/subjects\.hpp|cuda/subjects\.hpp|properties/.*)"},
      {"tools/.*|examples/.*", ".*"},
  };
  return kTable;
}

bool is_allowed(const std::string& from, const std::string& to) {
  for (const Arrow& arrow : arrows()) {
    if (std::regex_match(from, std::regex(arrow.from))) {
      return std::regex_match(to, std::regex(arrow.to));
    }
  }
  return false;
}

Complaints includes_against_the_arrows(const Tree& tree) {
  Complaints found;
  const std::regex include(R"re(^\s*#\s*include\s*[<"]([^">]+)[">])re");
  each_match(tree, &Source::code, include,
             [&found](const Source& from, std::size_t line, const std::string& to) {
               if (is_in_a_room(to) && !is_allowed(from.path, to)) {
                 found.push_back(complaint(from, line, "may not include " + to));
               }
             });
  return found;
}

Complaints includes_not_from_the_root(const Tree& tree) {
  Complaints found;
  const std::regex include(R"re(^\s*#\s*include\s*([<"][^">]+)[">])re");
  each_match(tree, &Source::code, include,
             [&found](const Source& from, std::size_t line, const std::string& to) {
               const bool quoted = to.front() == '"';
               const bool dotted = std::regex_search(to, std::regex(R"((^.|/)\.\.?/)"));
               if (dotted || quoted != is_in_a_room(to.substr(1))) {
                 found.push_back(complaint(
                     from, line, "include ours as \"room/...\", others in <>: " + to.substr(1)));
               }
             });
  return found;
}

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

struct Banned {
  std::string pattern;
  Lines Source::*reading;
  std::string why;
};

const std::vector<Banned>& banned() {
  static const std::vector<Banned> kTable{
      {R"(catch\s*\(\s*\.\.\.\s*\))", &Source::bare, "swallows verdicts: name what is caught"},
      {R"(\busing\s+namespace\b)", &Source::bare, "name what is used"},
      {R"(\bstd\s*::\s*s?rand\b)", &Source::bare, "use a seeded engine"},
      {R"(\bgetenv\b)", &Source::bare, "use an option"},
      {R"(\bassert\s*\()", &Source::bare, "use KVO_CHECK, which is on in every build"},
      {R"(\b(FIXME|TODO|XXX)\b)", &Source::words, "finish it or leave it out"},
  };
  return kTable;
}

Complaints banned_words(const Tree& tree) {
  Complaints found;
  for (const Banned& word : banned()) {
    each_match(tree, word.reading, std::regex(word.pattern),
               [&](const Source& source, std::size_t line, const std::string& /*capture*/) {
                 found.push_back(complaint(source, line, "banned, " + word.why));
               });
  }
  return found;
}

const Tree& this_tree() {
  static const Tree kTree = read_tree(KVO_SOURCE_ROOT);
  return kTree;
}

TEST(Tidy, TheTreeIsFound) {
  const auto is_this_file = [](const Source& source) {
    return source.path == "tools/tidy/tidy_test.cpp";
  };
  EXPECT_TRUE(std::any_of(this_tree().sources.begin(), this_tree().sources.end(), is_this_file));
}

TEST(Tidy, IncludesFollowTheArrows) {
  EXPECT_THAT(includes_against_the_arrows(this_tree()), IsEmpty());
}

TEST(Tidy, IncludesAreByPathFromTheRoot) {
  EXPECT_THAT(includes_not_from_the_root(this_tree()), IsEmpty());
}

TEST(Tidy, LinesHaveAtMost100Columns) {
  EXPECT_THAT(long_lines(this_tree()), IsEmpty());
}

TEST(Tidy, FilesHaveAtMost600Lines) {
  EXPECT_THAT(long_files(this_tree()), IsEmpty());
}

TEST(Tidy, EverySourceIsInATarget) {
  EXPECT_THAT(sources_in_no_target(this_tree()), IsEmpty());
}

TEST(Tidy, NoBannedWordIsUsed) {
  EXPECT_THAT(banned_words(this_tree()), IsEmpty());
}

/// A tree of one file.
Tree one(const std::string& path, const std::string& text) {
  return {.sources = {source(path, text)}, .builds = {}};
}

Complaints arrow(const std::string& from, const std::string& to) {
  return includes_against_the_arrows(one(from, fmt::format("#pragma once\n#include \"{}\"\n", to)));
}

TEST(TidyRule, RefusesIncludesAgainstTheArrows) {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"reference/views/paged.cpp", "traces/reader.hpp"},
      {"reference/contract/result.hpp", "reference/views/paged.hpp"},
      {"reference/views/contract.hpp", "reference/views/paged.hpp"},
      {"optimized/paged.cpp", "reference/views/paged.hpp"},
      {"optimized/paged.cpp", "cuda/device.hpp"},
      {"cuda/paged.cu", "optimized/block_pool.hpp"},
      {"cuda/paged_test.cpp", "reference/subjects.hpp"},
      {"traces/reader.cpp", "reference/views/paged.hpp"},
      {"traces/reader.cpp", "properties/runner.hpp"},
      {"properties/runner.cpp", "optimized/paged.hpp"},
      {"properties/runner.cpp", "cuda/device.hpp"},
      {"properties/runner.cpp", "tools/report.hpp"},
  };
  for (const auto& [from, to] : bad) {
    EXPECT_THAT(arrow(from, to), ElementsAre(fmt::format("{}:2: may not include {}", from, to)));
  }
  EXPECT_THAT(
      includes_against_the_arrows(one("optimized/a.cpp", "#include <reference/views/paged.hpp>\n")),
      ElementsAre(StartsWith("optimized/a.cpp:1: ")));
}

TEST(TidyRule, AllowsIncludesAlongTheArrows) {
  const std::vector<std::pair<std::string, std::string>> good{
      {"reference/views/paged.cpp", "reference/views/paged.hpp"},
      {"reference/views/contract.hpp", "reference/contract/result.hpp"},
      {"optimized/paged.cpp", "reference/contract/result.hpp"},
      {"optimized/paged.cpp", "reference/block_pool/contract.hpp"},
      {"optimized/paged.cpp", "reference/mlx_lm/contract_dtype.hpp"},
      {"cuda/paged.cu", "cuda/device.hpp"},
      {"traces/reader.cpp", "reference/prefix/contract.hpp"},
      {"properties/runner.cpp", "reference/views/paged.hpp"},
      {"properties/all_subjects.cpp", "optimized/subjects.hpp"},
      {"tools/main.cpp", "optimized/paged.hpp"},
  };
  for (const auto& [from, to] : good) EXPECT_THAT(arrow(from, to), IsEmpty()) << from << " " << to;
}

TEST(TidyRule, RefusesIncludesNotFromTheRoot) {
  for (const std::string bad :
       {"\"ring.hpp\"", "\"../traces/log.hpp\"", "\"traces/../tools/a.hpp\"",
        "\"./traces/log.hpp\"", "\"fmt/core.h\"", "<traces/log.hpp>", "<../traces/log.hpp>"}) {
    EXPECT_THAT(includes_not_from_the_root(one("traces/a.cpp", "\n#include " + bad + "\n")),
                ElementsAre(StartsWith("traces/a.cpp:2: ")))
        << bad;
  }
  const std::string good = "#include <fmt/core.h>\n#include \"traces/a.hpp\"\n// #include \"b\"\n";
  EXPECT_THAT(includes_not_from_the_root(one("traces/a.cpp", good)), IsEmpty());
}

TEST(TidyRule, RefusesLinesOf101Columns) {
  EXPECT_THAT(long_lines(one("cuda/a.cpp", "\n" + std::string(101, 'x'))),
              ElementsAre("cuda/a.cpp:2: 101 columns"));
  EXPECT_THAT(long_lines(one("cuda/a.cpp", std::string(100, 'x') + "\n")), IsEmpty());
  EXPECT_THAT(long_lines(one("cuda/a.cpp", std::string(99, 'x') + "\xC3\xA9")), IsEmpty());
}

TEST(TidyRule, RefusesFilesOf601Lines) {
  EXPECT_THAT(long_files(one("cuda/a.cpp", std::string(601, '\n'))),
              ElementsAre("cuda/a.cpp:601: 601 lines"));
  EXPECT_THAT(long_files(one("cuda/a.cpp", std::string(600, '\n'))), IsEmpty());
}

TEST(TidyRule, RefusesSourcesInNoTarget) {
  const auto with = [](const std::string& folder, const std::string& text) {
    Tree tree = one("cuda/pool/ring.cpp", "");
    tree.builds.push_back(build(folder, text));
    return sources_in_no_target(tree);
  };
  const auto refused = ElementsAre("cuda/pool/ring.cpp:1: in no CMakeLists.txt");
  EXPECT_THAT(with("cuda/", "kvo_library(a SOURCES ring.cpp)"), refused);
  EXPECT_THAT(with("cuda/pool/", "kvo_library(a SOURCES string.cpp)"), refused);
  EXPECT_THAT(with("cuda/pool/", "kvo_library(a SOURCES # ring.cpp\n)"), refused);
  EXPECT_THAT(with("traces/", "kvo_library(a SOURCES ring.cpp)"), refused);
  EXPECT_THAT(with("cuda/pool/", "kvo_library(a SOURCES ring.cpp)"), IsEmpty());
  EXPECT_THAT(with("cuda/", "kvo_library(a SOURCES\n  pool/ring.cpp\n)"), IsEmpty());
  EXPECT_THAT(with("cuda/", "f(\"${CMAKE_CURRENT_SOURCE_DIR}/pool/ring.cpp\")"), IsEmpty());
}

TEST(TidyRule, RefusesBannedWords) {
  for (const std::string bad :
       {"try {} catch (...) {}", "using namespace std;", "std::rand();", "getenv(\"A\");",
        "assert(a);", "int i = 1'000; assert (a);", R"(char c = '"'; assert(a);)",
        R"y(f(R"x(")x"); assert(a);)y", "/* a */ assert(a); // b", "// TODO: a", "/* FIXME */",
        "int XXX;"}) {
    EXPECT_THAT(banned_words(one("tools/a.cpp", "\n" + bad)),
                ElementsAre(StartsWith("tools/a.cpp:2: banned, ")))
        << bad;
  }
}

TEST(TidyRule, AllowsBannedWordsWhereTheyDoNoHarm) {
  for (const std::string good :
       {"// not by catch (...) nor assert(a)", "/* using\n namespace getenv */",
        "f(\"assert(a)\");", "f(R\"x(assert(\")\"a)x\");", "static_assert(true);",
        R"x(f("\"assert(a)");)x", "namespace kvo {}", "f(\"XXX\");", "mkstemp(kXXXXXX);"}) {
    EXPECT_THAT(banned_words(one("tools/a.cpp", good)), IsEmpty()) << good;
  }
}

TEST(TidyRule, ReadsTheRoomsOfATreeOnDisk) {
  const fs::path root = fs::path(testing::TempDir()) / "kvo tidy tree";
  fs::remove_all(root);
  const auto write = [&root](const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  write("CMakeLists.txt", "add_library(a traces/a.cpp)\n");
  write("traces/a.cpp", "#include \"tools/b.hpp\"\n");
  write("tools/CMakeLists.txt", "add_library(b other.cpp)\n");
  write("tools/deep/b.cpp", "assert(1);\n");
  write("build/release/c.cpp", "assert(1);\n");
  const Tree tree = read_tree(root);
  EXPECT_EQ(tree.sources.size(), 2U);
  EXPECT_THAT(includes_against_the_arrows(tree), ElementsAre(StartsWith("traces/a.cpp:1: ")));
  EXPECT_THAT(sources_in_no_target(tree), ElementsAre(StartsWith("tools/deep/b.cpp:1: ")));
  EXPECT_THAT(banned_words(tree), Contains(HasSubstr("KVO_CHECK")));
  fs::remove_all(root);
}

}  // namespace
}  // namespace kvo
