// Names of subjects are refused where they would garble what is printed.
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/campaign/contracts.hpp"
#include "properties/contracts.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/kvo_main.hpp"

namespace kvo {
namespace {

using testing::HasSubstr;

Subject named(std::string variant) {
  Subject subject = contracts().reference_of(*contracts().find_kind("layered", "vector"));
  subject.variant = std::move(variant);
  return subject;
}

TEST(Names, OfSubjectsAreWordsOfAFewLetters) {
  for (const char* good : {"a", "mutant:x", "cuda-sim", "v1.2_3+b"})
    EXPECT_NO_THROW(Contracts(contract_rows(), {named(good)})) << good;
  EXPECT_NO_THROW(Contracts(contract_rows(), {named(std::string(100, 'x'))}));
  for (const std::string& bad :
       {std::string(), std::string("x\x1b[2J"), std::string("x\nFAILED"), std::string("a b"),
        std::string("a|b"), std::string("a/b"), std::string("a@b"), std::string("gr\xc3\xbc"),
        std::string("\xff"), std::string(101, 'x'), std::string("a\0b", 3)})
    EXPECT_THROW(Contracts(contract_rows(), {named(bad)}), InvalidName) << bad;
}

TEST(Names, ThatAreRefusedAreShownShortAndPrintable) {
  try {
    const Contracts made(contract_rows(), {named("\x1b[2J" + std::string(5'000, 'x'))});
    FAIL() << "nothing was thrown";
  } catch (const InvalidName& error) {
    EXPECT_THAT(error.what(), HasSubstr("subject '\\x1b[2Jxx"));
    EXPECT_THAT(error.what(), HasSubstr("1 to 100 of letters, digits and . _ - + :"));
    EXPECT_LT(std::string(error.what()).size(), 200U);
  }
}

TEST(Names, OfContractsAndCachesAreCheckedToo) {
  for (const auto& [contract, cache] :
       std::vector<std::pair<const char*, const char*>>{{"lay\nered", "vector"}, {"own", "v w"}}) {
    static CacheKind kind;
    kind = *contracts().find_kind("layered", "vector");
    kind.contract = contract;
    kind.cache = cache;
    const auto references = [] {
      Subject subject = named("reference");
      subject.kind = &kind;
      return std::vector<Subject>{subject};
    };
    EXPECT_THROW(Contracts({{.name = "own", .references = references}}), InvalidName) << contract;
  }
}

TEST(Names, ThatAreRefusedEndTheCommandWithOneLine) {
  std::array<char, 9> name{"kvoracle"};
  std::array<char, 5> list{"list"};
  std::array<char*, 3> words{name.data(), list.data(), nullptr};
  EXPECT_EXIT(std::exit(kvo::main(2, words.data(), {named("x\nFAILED")})),
              testing::ExitedWithCode(tools::kExitUsage),
              "^kvoracle: subject 'x\\\\x0aFAILED': a name is [^\n]*\n$");
}

TEST(Names, OfComposedSubjectsMayHaveASlash) {
  for (const Subject* subject : contracts().subjects())
    if (subject->inside) {
      EXPECT_NO_THROW(Contracts(contract_rows(), {*subject}));
      return;
    }
  FAIL() << "none is composed";
}

// As ./tools/run builds the command.
TEST(Names, OfMutantsAreRefusedWithAReasonByABuildWithoutThem) {
  std::vector<ContractRow> rows = contract_rows();
  for (ContractRow& row : rows) {
    row.mutants = nullptr;
    row.device_mutants = nullptr;
  }
  const Contracts without(std::move(rows));
  try {
    (void)tools::select_subjects(without, {"provider.paged@mutant:runs_start_over"});
    FAIL() << "nothing was thrown";
  } catch (const tools::UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("this build has no mutants"));
  }
  EXPECT_NO_THROW(tools::check_has_mutants(contracts()));
}

}  // namespace
}  // namespace kvo
