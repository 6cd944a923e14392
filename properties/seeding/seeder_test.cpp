// The copies hold both texts. Rows that are malformed or do not fit their sources are refused.
#include "properties/seeding/seeder.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/seeding/fault.hpp"

namespace kvo::seeding {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kPath = "reference/x/cache.cpp";

std::string source(const std::string& body) {
  return "#include \"reference/x/cache.hpp\"\n#include \"reference/x/contract.hpp\"\n"
         "namespace kvo::x {\n" +
         body + "\n}  // namespace kvo::x\n";
}

Edit edit(const std::string& from, const std::string& to, const std::string& after = "") {
  return {.where = "x/faults.txt:7",
          .file = std::string(kPath),
          .after = after,
          .after_where = "x/faults.txt:6",
          .from = from,
          .to = to};
}

FaultRow fault(const std::string& name, std::vector<Edit> edits) {
  return {.where = "x/faults.txt:5", .kind = "x.y", .name = name, .edits = std::move(edits)};
}

std::string on(std::string_view name) {
  return "::kvo::seeding::fault_is_on(" + std::to_string(number_of("x.y", name)) + "U) /* " +
         std::string(name) + " */ ";
}

Copy copied(const std::string& body, const std::vector<FaultRow>& faults) {
  const std::vector<std::string> all{"reference/x/cache.hpp", std::string(kPath)};
  return copy_of(kPath, source(body), faults, all);
}

TEST(Seeder, AnExpressionBecomesAChoice) {
  const Copy copy = copied("int f() { return a + b; }", {fault("less", {edit("a + b", "a")})});
  EXPECT_THAT(copy.complaints, IsEmpty());
  EXPECT_THAT(copy.text, HasSubstr("return (" + on("less") + "? (a) : (a + b)); }"));
}

TEST(Seeder, AStatementBecomesAnIf) {
  const Copy copy = copied("void f() { a(); b(); }", {fault("none", {edit("a(); b();", "")})});
  std::string choice = on("none");
  choice.insert(choice.find(" /*"), ") {");
  EXPECT_THAT(copy.text, HasSubstr("{ { if (" + choice + " } else { a(); b(); } } }"));
}

TEST(Seeder, FaultsShareAPlaceAndLieInsideEachOther) {
  const Copy copy = copied(
      "x(a + b);", {fault("outer", {edit("a + b", "0")}), fault("same", {edit("a + b", "1")}),
                    fault("inner", {edit("b", "c", "a +")})});
  EXPECT_THAT(copy.complaints, IsEmpty());
  EXPECT_THAT(copy.text, HasSubstr("x((" + on("outer") + "? (0) : " + on("same") +
                                   "? (1) : (a + (" + on("inner") + "? (c) : (b)))));"));
}

TEST(Seeder, WhiteSpaceMatchesAnyOther) {
  EXPECT_THAT(copied("x(a +\n    b);", {fault("less", {edit("a + b", "a")})}).complaints,
              IsEmpty());
  EXPECT_THAT(
      copied("x(a+b);", {fault("less", {edit("a + b", "a")})}).complaints,
      ElementsAre("x/faults.txt:7: 'a + b' is not in reference/x/cache.cpp; allowed: a text "
                  "that it has exactly once"));
}

TEST(Seeder, NamesLineAndFileOfATextThatIsNotThereOrTwice) {
  EXPECT_THAT(copied("x(a); y(a);", {fault("twice", {edit("a", "b", "(")})}).complaints,
              ElementsAre(HasSubstr("x/faults.txt:6: '(' is more than once in reference/x/cache")));
  EXPECT_THAT(copied("p(q); q;", {fault("twice", {edit("q", "b")})}).complaints,
              ElementsAre(HasSubstr("x/faults.txt:7: 'q' is more than once in")));
  EXPECT_THAT(copied("x(a); y(a);", {fault("second", {edit("a", "b", "y(")})}).text,
              HasSubstr("x(a); y((" + on("second")));
  EXPECT_THAT(copied("p(q); r;", {fault("early", {edit("q", "b", "r;")})}).complaints,
              ElementsAre(HasSubstr("x/faults.txt:7: 'q' does not follow its 'after' in")));
}

TEST(Seeder, AnAdditionIsThereWhateverFaultIsOn) {
  const Copy copy =
      copied("int p = q;", {fault("more", {edit("", "int own = 0;", "q;"), edit("= q", "= own")})});
  EXPECT_THAT(copy.complaints, IsEmpty());
  EXPECT_THAT(copy.text, HasSubstr("int p (" + on("more") + "? (= own) : (= q)); int own = 0;"));
}

TEST(Seeder, RefusesEditsThatOverlapInPart) {
  EXPECT_THAT(copied("x(p + q + r);",
                     {fault("one", {edit("p + q", "0")}), fault("two", {edit("q + r", "0")})})
                  .complaints,
              ElementsAre(HasSubstr("x/faults.txt:7: 'q + r' overlaps an edit of one")));
}

TEST(Seeder, CopiesStandInTheirOwnNamespaceAndIncludeCopies) {
  const std::string text = copied("int a;", {}).text;
  EXPECT_THAT(text, HasSubstr("#include \"properties/seeded/reference/x/cache.hpp\"\n"));
  EXPECT_THAT(text, HasSubstr("#include \"reference/x/contract.hpp\"\n"));
  EXPECT_THAT(text, HasSubstr("namespace kvo::x { inline namespace seeded {\nint a;\n}\n"
                              "}  // namespace kvo::x\n"));
  EXPECT_THAT(copy_of(kPath, "#include <map>\nint a;\n", {}, {}).complaints,
              ElementsAre(HasSubstr("not one namespace kvo")));
}

TEST(Seeder, CopiesThatStandInsteadKeepNamespaceAndHeaders) {
  const std::vector<std::string> all{"reference/x/cache.hpp", std::string(kPath)};
  const std::vector<FaultRow> faults{fault("none", {edit("a", "0", "int b =")})};
  const Copy copy = copy_of(kPath, source("int b = a;"), faults, all, Housing::kInstead);
  EXPECT_THAT(copy.complaints, IsEmpty());
  EXPECT_EQ(copy.text, "// A copy of " + std::string(kPath) +
                           " with faults to switch on.\n"
                           "#include \"properties/seeding/fault.hpp\"\n" +
                           source("int b = (" + on("none") + "? (0) : (a));"));
  EXPECT_THAT(copy_of(all[0], source(""), {}, all, Housing::kInstead).complaints,
              ElementsAre("reference/x/cache.hpp: others include the header itself"));
}

TEST(Seeder, RefusesFilesThatAreNotCopiedAndNamesInUse) {
  Edit other = edit("x", "y");
  other.file = "traces/b.cpp";
  const std::vector<FaultRow> faults{fault("a", {other}), fault("a", {edit("x", "y")})};
  const std::vector<std::string> all{std::string(kPath)};
  EXPECT_THAT(complaints_about(faults, all),
              ElementsAre("x/faults.txt:7: 'traces/b.cpp' is not copied; allowed: "
                          "reference/x/cache.cpp",
                          "x/faults.txt:5: 'x.y@a' is the name of x/faults.txt:5; allowed: a name "
                          "of its own"));
}

// ---- rows as text ----

std::string text_of(const std::string& members) {
  return "# A comment.\nkinds: x.y x.z\n\nx.y@less\n" + members;
}

const std::string kSentences = "  fault: adds nothing\n  origin: B001, F01: what happened\n";
const std::string kEdit = "  file: reference/x/cache.cpp\n  from: a + b\n  to: a\n";

TEST(FaultFile, ReadsRowsWithTextsOfSeveralLines) {
  const FaultFile file =
      parse_faults("properties/x/faults.txt",
                   text_of("  fault: adds\n    nothing\n  origin: B001, F01: what happened\n"
                           "  # why it is so\n  profile: original\n  longest_script: 300\n"
                           "  laws: a_b_a 100,\n    fork_then_write 20\n" +
                           kEdit +
                           "  after: {\n  from: b();\n    c();\n  to: if (d)\n      b();\n"
                           "  file: reference/x/cache.hpp\n  after: int a;\n  add: int own;\n"
                           "x.z@more\n" +
                           kSentences + "  file: a/b\n  from: c;\n  to:\n"));
  EXPECT_THAT(file.complaints, IsEmpty());
  ASSERT_EQ(file.rows.size(), 2U);
  const FaultRow& row = file.rows[0];
  EXPECT_EQ(row.where, "properties/x/faults.txt:4");
  EXPECT_EQ(row.kind + " " + row.name, "x.y less");
  EXPECT_EQ(row.fault, "adds nothing");
  EXPECT_EQ(row.origin, "B001, F01: what happened");
  EXPECT_EQ(row.profile, Profile::kOriginal);
  EXPECT_EQ(row.longest_script, 300U);
  EXPECT_EQ(row.laws, "a_b_a 100, fork_then_write 20");
  ASSERT_EQ(row.edits.size(), 3U);
  EXPECT_EQ(row.edits[0].from, "a + b");
  EXPECT_EQ(row.edits[0].where, "properties/x/faults.txt:14");
  EXPECT_EQ(row.edits[1].file, "reference/x/cache.cpp");
  EXPECT_EQ(row.edits[1].after, "{");
  EXPECT_EQ(row.edits[1].from, "b();\nc();");
  EXPECT_EQ(row.edits[1].to, "if (d)\n  b();");
  EXPECT_EQ(row.edits[2].file, "reference/x/cache.hpp");
  EXPECT_EQ(row.edits[2].from, "");
  EXPECT_EQ(row.edits[2].to, "int own;");
  EXPECT_EQ(file.rows[1].profile, std::nullopt);
  EXPECT_EQ(file.rows[1].longest_script, 10U);
  EXPECT_EQ(file.rows[1].edits[0].to, "");
}

TEST(FaultFile, NamesFileLineAndWordOfABadRow) {
  const auto complaints = [](const std::string& text) {
    return parse_faults("f.txt", text).complaints;
  };
  EXPECT_THAT(complaints("kinds: x.y x.z\nx.w@a\n" + kSentences + kEdit),
              ElementsAre("f.txt:2: 'x.w': not among the kinds of this file; allowed: x.y, x.z"));
  EXPECT_THAT(complaints("kinds: x.y\nx.y@A b\n" + kSentences + kEdit),
              ElementsAre(HasSubstr("f.txt:2: 'x.y@A b': a heading is kind@name")));
  EXPECT_THAT(complaints(text_of(kSentences + kEdit + "  form: c\n")),
              ElementsAre("f.txt:10: 'form': no member; allowed: fault, origin, profile, "
                          "longest_script, laws, file, after, from, to, add"));
  EXPECT_THAT(complaints(text_of("  fault: adds nothing\n" + kEdit)),
              ElementsAre("f.txt:4: 'x.y@less': it has no origin"));
  EXPECT_THAT(complaints(text_of("  origin: B001\n" + kEdit)),
              ElementsAre("f.txt:4: 'x.y@less': it has no fault"));
  EXPECT_THAT(complaints(text_of(kSentences)), ElementsAre("f.txt:4: 'x.y@less': it has no edits"));
  EXPECT_THAT(complaints(text_of(kSentences + "  origin: again\n" + kEdit)),
              ElementsAre("f.txt:7: 'origin': the row has this member already"));
  EXPECT_THAT(complaints(text_of(kSentences + "  profile: both\n" + kEdit)),
              ElementsAre("f.txt:7: 'both': no profile; allowed: original, documented"));
  EXPECT_THAT(complaints(text_of(kSentences + "  longest_script: 0\n" + kEdit)),
              ElementsAre(HasSubstr("f.txt:4: '0': longest_script is a number of operations")));
  for (const std::string laws : {"a_b_a", "a_b_a 0", "a_b_a 1 2", "a_b_a 100,", ", a_b_a 1"})
    EXPECT_THAT(complaints(text_of(kSentences + "  laws: " + laws + "\n" + kEdit)),
                ElementsAre(HasSubstr("f.txt:4: '" + laws + "': laws are names with a number")));
  EXPECT_THAT(complaints(text_of(kSentences + kEdit + "   to: b\n")),
              ElementsAre(HasSubstr("f.txt:10: 'to: b': a member begins after 2 spaces")));
  EXPECT_THAT(complaints("  fault: early\n"),
              ElementsAre(HasSubstr("f.txt:1: 'fault': a heading")));
}

TEST(FaultFile, NamesFileLineAndWordOfABadEdit) {
  const auto complaints = [](const std::string& edits) {
    return parse_faults("f.txt", text_of(kSentences + edits)).complaints;
  };
  EXPECT_THAT(complaints("  from: a\n  to: b\n"),
              ElementsAre("f.txt:7: 'from': a file comes first", HasSubstr("f.txt:8: 'to': out of"),
                          HasSubstr("it has no edits")));
  EXPECT_THAT(complaints(kEdit + "  to: c\n"),
              ElementsAre(HasSubstr("f.txt:10: 'to': out of order; an edit is file, after")));
  EXPECT_THAT(complaints("  file: a/b\n  add: c\n"),
              ElementsAre(HasSubstr("f.txt:8: 'add': out of order"), HasSubstr("without")));
  EXPECT_THAT(complaints("  file: a/b\n  from: c\n"),
              ElementsAre("f.txt:8: the edit ends without 'to' or 'add'"));
  EXPECT_THAT(complaints("  file: a/b\n  from:\n  to: c\n"),
              Contains("f.txt:8: 'from': it is empty"));
  EXPECT_THAT(complaints(kEdit + "  file: optimized/x/cache.cpp\n  from: a\n  to: b\n"),
              ElementsAre("f.txt:11: 'optimized/x/cache.cpp': edits of a row are all in "
                          "reference/"));
}

TEST(FaultFile, TheTableHasTheRowsWithoutEdits) {
  const FaultFile file = parse_faults(
      "properties/x/faults.txt",
      text_of("  fault: says \"no\"\n  origin: B001\n  profile: documented\n" + kEdit));
  EXPECT_THAT(table_of("properties/x/faults.txt", file.rows),
              HasSubstr("namespace kvo::x {\nconstexpr ::kvo::seeding::Fault kFaults[] = {\n"
                        "{\"x.y\", \"less\", \"says \\\"no\\\"\", \"B001\", \"reference\", "
                        "::kvo::Profile::kDocumented, 10, \"\"},\n};\n}\n"));
}

// ---- files ----

class SeedTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  [[nodiscard]] std::vector<std::string> run() const {
    return seed(Housing::kBeside, root_, root_ / "out",
                {"properties/x/faults.txt", "reference/x/cache.cpp"});
  }

  // Tests run at the same time, each in a folder of its own.
  std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) /
      ("kvo_seeder_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(SeedTest, WritesCopiesAndTables) {
  put("properties/x/faults.txt", text_of(kSentences + kEdit));
  put("reference/x/cache.cpp", source("int c = a + b;"));
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(root_ / "out/properties/seeded/reference/x/cache.cpp"));
  EXPECT_TRUE(std::filesystem::exists(root_ / "out/properties/seeded/x/faults.hpp"));
}

TEST_F(SeedTest, WritesNothingWithAComplaint) {
  put("properties/x/faults.txt", text_of(kSentences + kEdit));
  EXPECT_THAT(run(), Contains(HasSubstr("reference/x/cache.cpp: cannot be read")));
  put("reference/x/cache.cpp", source("int c = a - b;"));
  EXPECT_THAT(run(), ElementsAre(HasSubstr("properties/x/faults.txt:8: 'a + b' is not in")));
  put("properties/x/faults.txt", text_of(kSentences));
  EXPECT_THAT(run(), ElementsAre("properties/x/faults.txt:4: 'x.y@less': it has no edits"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "out"));
}

TEST(FaultScope, IsOnUntilItsEnd) {
  EXPECT_FALSE(fault_is_on(number_of("x.y", "a")));
  {
    const FaultScope outer(number_of("x.y", "a"));
    EXPECT_TRUE(fault_is_on(number_of("x.y", "a")));
    { const FaultScope inner(number_of("x.y", "b")); }
    EXPECT_TRUE(fault_is_on(number_of("x.y", "a")));
  }
  EXPECT_FALSE(fault_is_on(number_of("x.y", "a")));
}

}  // namespace
}  // namespace kvo::seeding
