// tools/tidy/rules_test.cpp: each rule is fed something bad and refuses it.
#include "tools/tidy/rules.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo::tidy {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// A tree of one file.
Tree one(const std::string& path, const std::string& text) {
  return {.sources = {source(path, text)}, .builds = {}};
}

Complaints arrow(const std::string& from, const std::string& to) {
  return includes_against_the_arrows(one(from, fmt::format("#pragma once\n#include \"{}\"\n", to)));
}

TEST(TidyRule, RefusesIncludesAgainstTheArrows) {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"reference/views/paged_cache.cpp", "traces/reader.hpp"},
      {"reference/contract/result.hpp", "reference/views/paged.hpp"},
      {"reference/contract/subject/subject.cpp", "reference/subjects.hpp"},
      {"reference/views/cache.hpp", "reference/views/paged_cache.hpp"},
      {"reference/views/paged.hpp", "reference/views/paged_operations.hpp"},
      {"reference/views/operations.hpp", "reference/views/session.hpp"},
      {"optimized/views/paged_cache.cpp", "reference/views/paged_cache.hpp"},
      {"optimized/views/paged_cache.cpp", "reference/views/paged_operations.hpp"},
      {"optimized/views/subjects.cpp", "reference/views/paged_cache.hpp"},
      {"optimized/views/paged_cache.cpp", "cuda/device/stream.hpp"},
      {"cuda/views/paged_cache.cu", "optimized/views/paged_cache.hpp"},
      {"cuda/views/paged_test.cpp", "reference/subjects.hpp"},
      {"traces/log/log.cpp", "reference/views/cache.hpp"},
      {"traces/log/log.cpp", "properties/runner/lockstep.hpp"},
      {"properties/runner/lockstep.cpp", "reference/views/cache.hpp"},
      {"properties/runner/lockstep.cpp", "properties/views/oracle.hpp"},
      {"properties/runner/lockstep.cpp", "properties/replay/schedule.hpp"},
      {"properties/runner/lockstep.cpp", "optimized/views/paged_cache.hpp"},
      {"properties/runner/lockstep.cpp", "tools/report.hpp"},
      {"properties/replay/schedule.cpp", "cuda/views/paged_cache.hpp"},
      {"properties/campaign/law.cpp", "properties/views/oracle.hpp"},
      {"properties/campaign/law.cpp", "properties/contracts.hpp"},
      {"properties/contracts.hpp", "reference/views/cache.hpp"},
  };
  for (const auto& [from, to] : bad) {
    EXPECT_THAT(arrow(from, to), ElementsAre(fmt::format("{}:2: may not include {}", from, to)));
  }
  EXPECT_THAT(includes_against_the_arrows(
                  one("optimized/a.cpp", "#include <reference/views/paged_cache.hpp>\n")),
              ElementsAre(StartsWith("optimized/a.cpp:1: ")));
}

TEST(TidyRule, AllowsIncludesAlongTheArrows) {
  const std::vector<std::pair<std::string, std::string>> good{
      {"reference/views/paged_cache.cpp", "reference/views/paged_cache.hpp"},
      {"reference/views/cache.hpp", "reference/contract/values/result.hpp"},
      {"reference/views/paged.hpp", "reference/views/cache.hpp"},
      {"reference/views/paged_operations.hpp", "reference/views/operations.hpp"},
      {"optimized/views/paged_cache.cpp", "reference/contract/values/result.hpp"},
      {"optimized/views/paged_cache.hpp", "reference/block_pool/cache.hpp"},
      {"optimized/views/paged_cache.hpp", "reference/views/paged.hpp"},
      {"optimized/views/paged_cache.cpp", "reference/views/quirks.hpp"},
      {"optimized/views/subjects.cpp", "reference/views/operations.hpp"},
      {"cuda/views/paged_cache.cu", "cuda/device/stream.hpp"},
      {"traces/log/log.cpp", "reference/contract/describe/json.hpp"},
      {"properties/runner/lockstep_test.cpp", "reference/views/paged_cache.hpp"},
      {"properties/replay/schedule.cpp", "properties/runner/lockstep.hpp"},
      {"properties/views/mutants.cpp", "optimized/views/paged_cache.hpp"},
      {"properties/views/oracle.cpp", "properties/campaign/law.hpp"},
      {"properties/contracts.cpp", "properties/views/oracle.hpp"},
      {"properties/contracts.cpp", "optimized/subjects.hpp"},
      {"tools/main.cpp", "optimized/views/paged_cache.hpp"},
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

TEST(TidyRule, AProjectOfItsOwnIncludesItsOwnFiles) {
  EXPECT_THAT(includes_not_from_the_root(one("examples/own/a.cpp", "#include \"ring.hpp\"\n")),
              IsEmpty());
  for (const std::string bad : {"<traces/log.hpp>", "\"../ring.hpp\""})
    EXPECT_THAT(includes_not_from_the_root(one("examples/own/a.cpp", "#include " + bad + "\n")),
                testing::SizeIs(1))
        << bad;
}

TEST(TidyRule, RefusesLinesOf101Columns) {
  EXPECT_THAT(long_lines(one("cuda/a.cpp", "\n" + std::string(101, 'x'))),
              ElementsAre("cuda/a.cpp:2: 101 columns"));
  EXPECT_THAT(long_lines(one("cuda/a.cpp", std::string(100, 'x') + "\n")), IsEmpty());
  EXPECT_THAT(long_lines(one("cuda/a.cpp", std::string(99, 'x') + "\xC3\xA9")), IsEmpty());
}

TEST(TidyRule, RefusesFilesOf501Lines) {
  EXPECT_THAT(long_files(one("cuda/a.cpp", std::string(501, '\n'))),
              ElementsAre("cuda/a.cpp:501: 501 lines"));
  EXPECT_THAT(long_files(one("cuda/a.cpp", std::string(500, '\n'))), IsEmpty());
}

TEST(TidyRule, RefusesJsonInCacheHeaders) {
  Tree tree;
  const auto add = [&tree](const std::string& path, const std::string& include) {
    tree.sources.push_back(source(path, "#include " + include + "\n"));
  };
  add("reference/contract/describe.hpp", "<boost/json/value.hpp>");
  add("reference/contract/values.hpp", "<boost/describe.hpp>");
  add("reference/views/cache.hpp", "\"reference/views/paged.hpp\"");
  add("reference/views/operations.hpp", "\"reference/contract/describe.hpp\"");
  add("reference/views/paged.hpp", "\"reference/contract/describe.hpp\"");
  add("reference/views/ring.hpp", "\"reference/contract/values.hpp\"");
  EXPECT_THAT(json_in_cache_headers(tree),
              ElementsAre("reference/views/cache.hpp:1: brings JSON: reference/views/cache.hpp > "
                          "reference/views/paged.hpp > reference/contract/describe.hpp > "
                          "boost/json/value.hpp",
                          StartsWith("reference/views/paged.hpp:1: brings JSON")));
}

TEST(TidyRule, EndsWithIncludesInACircle) {
  Tree tree;
  tree.sources.push_back(source("reference/a/cache.hpp", "#include \"reference/a/b.hpp\"\n"));
  tree.sources.push_back(source("reference/a/b.hpp", "#include \"reference/a/cache.hpp\"\n"));
  EXPECT_THAT(json_in_cache_headers(tree), IsEmpty());
}

/// What the rule says of a file that is `head`, a body of that many lines, and `tail`.
Complaints body(const std::string& head, std::size_t lines, const std::string& tail = "}\n") {
  std::string text = head + "\n";
  for (std::size_t i = 0; i < lines; ++i) text += "  f(\"{\");\n";
  return long_functions(one("tools/a.cpp", text + tail));
}

TEST(TidyRule, RefusesFunctionsOf71Lines) {
  for (const std::string head :
       {"void f() {", "namespace a { int f(int b = {}) const noexcept {",
        "template <class A> auto f(A a) -> A {", "C::C() : a_{1}, b_(2), c_{} {",
        "struct C { bool operator==(const C& c) const {", "TEST(A, B) {",
        "auto f() {\n#if A\n#define B {\n#endif", "const auto k = [](int a) {",
        "int a[] = {1, 2};\nvoid f(\n    int a) {"}) {
    EXPECT_THAT(body(head, 80), ElementsAre(HasSubstr(": a function of "))) << head;
  }
  EXPECT_THAT(body("void f() {", 71), ElementsAre("tools/a.cpp:1: a function of 71 lines"));
  EXPECT_THAT(body("void f() {\n  if (a) {", 68, "  }\n}\nvoid g() {}\n"), IsEmpty());
  EXPECT_THAT(body("void f() {\n  if (a) {", 69, "  }\n}\nvoid g() {}\n"),
              ElementsAre("tools/a.cpp:1: a function of 71 lines"));
}

TEST(TidyRule, AllowsFunctionsOf70LinesAndLongTypes) {
  EXPECT_THAT(body("void f() {", 70), IsEmpty());
  for (const std::string head :
       {"namespace a {", "template <class A> class B : C<decltype(a())> {", "enum class A {",
        "const std::vector<A> kTable{", "struct A {", "extern \"C\" {"}) {
    EXPECT_THAT(body(head, 80), IsEmpty()) << head;
  }
}

TEST(TidyRule, RefusesVirtualsThatDoNotTellTheirErrors) {
  const auto told = [](const std::string& comment, const std::string& member,
                       const std::string& section = " public:\n") {
    return errors_not_told(
        one("reference/views/cache.hpp", comment + "class Cache {\n" + section + member + "};\n"));
  };
  const std::string member =
      "  /// Cuts.\n  [[nodiscard]] virtual Status cut(\n      int n) = 0;\n";
  const auto refused = ElementsAre(HasSubstr("does not tell its Errors"));
  EXPECT_THAT(told("", member), refused);
  EXPECT_THAT(told("/// A cache.\n", "  virtual Result<int> cut() = 0;\n"), refused);
  EXPECT_THAT(told("/// A cache. Errors change nothing.\n", member), IsEmpty());
  EXPECT_THAT(told("", "  /// Errors  kFull.\n  virtual Status cut() = 0;\n"), IsEmpty());
  EXPECT_THAT(told("", "  virtual Result<int> size() const = 0;\n"), IsEmpty());
  EXPECT_THAT(told("", "  virtual void clear() = 0;\n"), IsEmpty());
  EXPECT_THAT(told("", member, " private:\n"), IsEmpty());
}

TEST(TidyRule, ExcusesOnlyWhatIsListed) {
  const std::vector<NotYet> excused{{.path = "tools/a.cpp", .what = "501 lines"}};
  EXPECT_THAT(without(excused, {"tools/a.cpp:501: 501 lines", "tools/b.cpp:501: 501 lines",
                                "tools/a.cpp:501: 502 lines"}),
              ElementsAre("tools/b.cpp:501: 501 lines", "tools/a.cpp:501: 502 lines"));
  EXPECT_THAT(unused(excused, {"tools/a.cpp:501: 501 lines"}), IsEmpty());
  EXPECT_THAT(unused(excused, {}), ElementsAre("tools/a.cpp: 501 lines"));
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
}  // namespace kvo::tidy
