// The copies hold both texts, and a table that does not fit its sources is refused.
#include "properties/seeding/seeder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo::seeding {
namespace {

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

Fault fault(std::string_view name, std::vector<Edit> edits) {
  return {.kind = "x.y", .name = name, .fault = "", .origin = "", .edits = std::move(edits)};
}

std::string on(std::string_view name) {
  return "::kvo::seeding::fault_is_on(" + std::to_string(number_of("x.y", name)) + "U) /* " +
         std::string(name) + " */ ";
}

Copy copied(const std::string& body, const std::vector<Fault>& faults) {
  const std::vector<std::string> all{"reference/x/cache.hpp", std::string(kPath)};
  return copy_of(kPath, source(body), faults, all);
}

TEST(Seeder, AnExpressionBecomesAChoice) {
  const Copy copy = copied("int f() { return a + b; }", {fault("less", {{kPath, "a + b", "a"}})});
  EXPECT_THAT(copy.complaints, IsEmpty());
  EXPECT_THAT(copy.text, HasSubstr("return (" + on("less") + "? (a) : (a + b)); }"));
}

TEST(Seeder, AStatementBecomesAnIf) {
  const Copy copy = copied("void f() { a(); b(); }", {fault("none", {{kPath, "a(); b();", ""}})});
  std::string choice = on("none");
  choice.insert(choice.find(" /*"), ") {");
  EXPECT_THAT(copy.text, HasSubstr("{ { if (" + choice + " } else { a(); b(); } } }"));
}

TEST(Seeder, FaultsShareAPlaceAndLieInsideEachOther) {
  const Copy copy = copied(
      "x(a + b);", {fault("outer", {{kPath, "a + b", "0"}}), fault("same", {{kPath, "a + b", "1"}}),
                    fault("inner", {{kPath, "b", "c", "a +"}})});
  EXPECT_THAT(copy.complaints, IsEmpty());
  EXPECT_THAT(copy.text, HasSubstr("x((" + on("outer") + "? (0) : " + on("same") +
                                   "? (1) : (a + (" + on("inner") + "? (c) : (b)))));"));
}

TEST(Seeder, WhiteSpaceMatchesAnyOther) {
  EXPECT_THAT(copied("x(a +\n    b);", {fault("less", {{kPath, "a + b", "a"}})}).complaints,
              IsEmpty());
  EXPECT_THAT(copied("x(a+b);", {fault("less", {{kPath, "a + b", "a"}})}).complaints,
              ElementsAre("x.y@mutant:less: reference/x/cache.cpp: not found: a + b"));
}

TEST(Seeder, NamesFaultAndFileOfATextThatIsNotThereOrTwice) {
  EXPECT_THAT(copied("x(a); y(a);", {fault("twice", {{kPath, "a", "b", "("}})}).complaints,
              ElementsAre("x.y@mutant:twice: reference/x/cache.cpp: found twice: ("));
  EXPECT_THAT(copied("p(q); q;", {fault("twice", {{kPath, "q", "b"}})}).complaints,
              ElementsAre("x.y@mutant:twice: reference/x/cache.cpp: found twice: q"));
  EXPECT_THAT(copied("x(a); y(a);", {fault("second", {{kPath, "a", "b", "y("}})}).text,
              HasSubstr("x(a); y((" + on("second")));
  EXPECT_THAT(copied("x(a);", {fault("empty", {{kPath, "", "b"}})}).complaints,
              ElementsAre(HasSubstr("not found")));
}

TEST(Seeder, RefusesEditsThatOverlapInPart) {
  EXPECT_THAT(
      copied("x(p + q + r);",
             {fault("one", {{kPath, "p + q", "0"}}), fault("two", {{kPath, "q + r", "0"}})})
          .complaints,
      ElementsAre(HasSubstr("x.y@mutant:two: reference/x/cache.cpp: overlaps an edit of one")));
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
  const std::vector<Fault> faults{fault("none", {{kPath, "a", "0", "int b ="}})};
  const Copy copy = copy_of(kPath, source("int b = a;"), faults, all, Housing::kInstead);
  EXPECT_THAT(copy.complaints, IsEmpty());
  EXPECT_EQ(copy.text, "// A copy of " + std::string(kPath) +
                           " with faults to switch on.\n"
                           "#include \"properties/seeding/fault.hpp\"\n" +
                           source("int b = (" + on("none") + "? (0) : (a));"));
  EXPECT_THAT(copy_of(all[0], source(""), {}, all, Housing::kInstead).complaints,
              ElementsAre("reference/x/cache.hpp: others include the header itself"));
}

TEST(Seeder, RefusesTablesThatSayTooMuchOrNothing) {
  const std::vector<Fault> faults{fault("a", {{"traces/b.cpp", "x", "y"}}),
                                  fault("a", {{kPath, "x", "y"}}), fault("b", {})};
  const std::vector<std::string> all{std::string(kPath)};
  EXPECT_THAT(
      complaints_about(faults, all),
      ElementsAre("x.y@mutant:a: traces/b.cpp is not among the copied files",
                  "x.y@mutant:a: there is another of this name", "x.y@mutant:b: edits nothing"));
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
