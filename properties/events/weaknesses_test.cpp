// Each declared weakness of a follower (EV-95) that lawful engines and a drawn channel reach is
// found by the law alone, and with all of them declared the law finds nothing.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "properties/campaign/random_case.hpp"
#include "properties/contract_parts.hpp"
#include "properties/contracts.hpp"
#include "properties/events/oracle.hpp"

namespace kvo::events {
namespace {

struct Reachable {
  Form form;
  Quirk weakness;
  const char* first_words;  ///< of a verdict, behind the engine
};

constexpr std::uint64_t kMostCases = 600;
constexpr int kOperations = 60;

std::string name_of(const Reachable& row) {
  return std::string(kind_of(row.form).cache) + "_" +
         kQuirkRows[static_cast<std::size_t>(row.weakness)].name();
}

/// What the law says of the reference in the index-th case, with these weaknesses declared.
std::optional<std::string> said(Form form, std::uint64_t index, QuirkSet<Quirk> declared) {
  for (const Generator& generator : generators()) {
    if (generator.kind != &kind_of(form)) continue;
    GeneratedCase drawn = generator.make({.seed = case_seed(1, index)});
    const Subject& reference = contracts().reference_of(*generator.kind);
    drawn.ops->follow(reference, drawn.setup, Scale::kSmall);
    const auto session = reference.open(drawn.setup).value();
    const auto law = law_of(form, drawn.setup.config_as<Config>(), declared);
    Probe probe;
    for (int i = 0; i < kOperations; ++i) {
      const auto op = drawn.ops->next();
      if (!op) break;
      if (auto words = law->check(*op, session->apply(*op, probe))) return words;
    }
  }
  return std::nullopt;
}

class Weakness : public testing::TestWithParam<Reachable> {};

TEST_P(Weakness, IsFoundByTheLaw) {
  const Reachable& row = GetParam();
  QuirkSet<Quirk> others(Profile::kOriginal);
  others.remove(row.weakness);
  for (std::uint64_t index = 0; index < kMostCases; ++index) {
    const auto words = said(row.form, index, others);
    if (!words || words->find(row.first_words) == std::string::npos) continue;
    EXPECT_EQ(said(row.form, index, QuirkSet<Quirk>(Profile::kOriginal)), std::nullopt);
    return;
  }
  ADD_FAILURE() << "no case shows it";
}

using Q = Quirk;
INSTANTIATE_TEST_SUITE_P(
    EventsWeaknesses, Weakness,
    testing::Values(Reachable{Form::kChain, Q::kOneRemovalEnds, "forgotten"},
                    Reachable{Form::kChain, Q::kRanksShareBlocks, "forgotten"},
                    Reachable{Form::kRadix, Q::kOneRemovalEnds, "forgotten"},
                    Reachable{Form::kRadix, Q::kHoleEndsEdge, "forgotten"},
                    Reachable{Form::kRadix, Q::kFirstNameStays, ": "},
                    Reachable{Form::kCrtc, Q::kCountIsIdentity, "phantom"},
                    Reachable{Form::kPositional, Q::kHolesUnseen, "phantom"},
                    Reachable{Form::kPositional, Q::kForeignKeysUnfound, "forgotten"},
                    Reachable{Form::kDynamo, Q::kHoleEndsEdge, "forgotten"},
                    Reachable{Form::kDynamo, Q::kRestartUnseen, ": "},
                    Reachable{Form::kDynamo, Q::kLateReplayTaken, "phantom"},
                    Reachable{Form::kLlmd, Q::kNumbersUnread, "phantom"},
                    Reachable{Form::kLlmd, Q::kExtraKeysHashed, "forgotten"},
                    Reachable{Form::kLlmd, Q::kLeaveKeepsCounts, "phantom"},
                    Reachable{Form::kLlmd, Q::kRanksShareBlocks, ": "},
                    Reachable{Form::kLlmd, Q::kMapsUnread, "forgotten"},
                    Reachable{Form::kLlmd, Q::kLimitsForget, "forgotten"},
                    Reachable{Form::kInfera, Q::kOneRemovalEnds, "forgotten"},
                    Reachable{Form::kInfera, Q::kNumbersUnread, ": "},
                    Reachable{Form::kInfera, Q::kRanksShareBlocks, "forgotten"},
                    Reachable{Form::kInfera, Q::kRemovalsUnfiltered, "forgotten"},
                    Reachable{Form::kInfera, Q::kNamespacesShared, "phantom"},
                    Reachable{Form::kInfera, Q::kMapsUnread, "forgotten"}),
    [](const auto& trial) { return name_of(trial.param); });

// ---- Weaknesses as conventions ----

/// The follower of a kind in profile original, which is judged by what profile documented says.
Subject original(Form form, const std::vector<std::string>& named) {
  const Subject& reference = contracts().reference_of(kind_of(form));
  Subject made = reference;
  made.variant = "original";
  made.open = [&reference](const Setup& setup) {
    Setup as_original = setup;
    as_original.profile = Profile::kOriginal;
    return reference.open(as_original);
  };
  made.conventions.named = named;
  return made;
}

/// How many of the first cases fail under the laws.
int failures(const Subject& subject) {
  constexpr std::uint64_t kCases = 40;
  int failed = 0;
  for (const Law* law : contracts().laws_of(*subject.kind))
    for (std::uint64_t index = 0; index < kCases; ++index) {
      const CasePlan plan =
          random_case(contracts(), *law, {&subject}, 5, index, Profile::kDocumented, Scale::kSmall);
      if (law->name() != "agrees_with_reference" && law->name() != "recompute_equivalence")
        continue;
      for (const SubjectResult& one : run_case(plan, {.attempts = 0}).subjects)
        failed += one.verdict.failed() ? 1 : 0;
    }
  return failed;
}

TEST(EventsConventions, ADeclaredWeaknessIsNoFault) {
  EXPECT_GT(failures(original(Form::kChain, {})), 0);
  EXPECT_EQ(failures(original(Form::kChain, {"declared_weaknesses"})), 0);
  EXPECT_GT(failures(original(Form::kRadix, {"one_removal_ends"})), 0);
  EXPECT_EQ(failures(original(Form::kRadix, {"declared_weaknesses"})), 0);
  EXPECT_GT(failures(original(Form::kLlmd, {})), 0);
  EXPECT_EQ(failures(original(Form::kLlmd, {"declared_weaknesses"})), 0);
}

}  // namespace
}  // namespace kvo::events
