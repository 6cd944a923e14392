// Each law that needs no reference catches faults by itself, says something on each of its kinds,
// and shrinks.
#include "properties/campaign/metamorphic.hpp"

#include <algorithm>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"

namespace kvo {
namespace {

const Law& law_named(const std::string& name) {
  const Law* law = contracts().find_law(name);
  EXPECT_NE(law, nullptr) << name;
  return *law;
}

/// A law, and a mutant that it catches alone within so many cases: `laws` of a mutant.
struct LawTrial {
  std::string law;
  const Mutant* mutant;
  std::uint64_t cases;

  friend void PrintTo(const LawTrial& trial, std::ostream* out) {  // NOLINT: GoogleTest's name
    *out << trial.law << " on " << trial.mutant->subject.name();
  }
};

std::vector<LawTrial> law_trials() {
  std::vector<LawTrial> all;
  for (const Mutant& mutant : contracts().mutants()) {
    std::string text = mutant.laws;
    std::ranges::replace(text, ',', ' ');
    std::istringstream words(text);
    LawTrial trial{.law = {}, .mutant = &mutant, .cases = 0};
    while (words >> trial.law >> trial.cases) all.push_back(trial);
  }
  return all;
}

class EachLaw : public testing::TestWithParam<LawTrial> {};

INSTANTIATE_TEST_SUITE_P(Mutants, EachLaw, testing::ValuesIn(law_trials()));

TEST_P(EachLaw, CatchesAFaultAlone) {
  const LawTrial& trial = GetParam();
  const Subject* mutant = &trial.mutant->subject;
  const Law& law = law_named(trial.law);
  for (std::uint64_t index = 0; index < trial.cases; ++index) {
    const CasePlan plan = random_case(contracts(), law, {mutant}, 1, index,
                                      trial.mutant->profile.value_or(Profile::kOriginal));
    const CaseResult result = run_case(plan, {});
    const SubjectResult& judged = result.subjects.back();
    if (!judged.verdict.failed()) continue;
    EXPECT_TRUE(judged.repeats()) << "a shrunk script still fails";
    EXPECT_LE(judged.shrunk->operations, trial.mutant->longest_script);
    return;
  }
  FAIL() << "not caught within " << trial.cases << " cases";
}

TEST(Metamorphic, EveryLawSaysSomethingOnEachOfItsKinds) {
  constexpr std::uint64_t kCases = 40;
  for (const Law* law : contracts().laws()) {
    if (!law->judges_reference()) continue;
    for (const CacheKind* kind : contracts().kinds()) {
      if (!law->applies_to(*kind) || contracts().generator_of(*kind) == nullptr) continue;
      const bool survives = contracts().reference_of(*kind).survives_failed_allocation;
      if (law->name() == "failed_allocation_changes_nothing" && !survives) continue;
      Evidence evidence;
      const auto rows = [&] { return evidence.compared + evidence.rows_judged; };
      for (std::uint64_t index = 0; index < kCases && rows() == 0; ++index) {
        // What quirks change, some laws judge in profile documented only.
        const Profile profile = index % 2 == 0 ? Profile::kOriginal : Profile::kDocumented;
        const CasePlan plan =
            random_case(contracts(), *law, {&contracts().reference_of(*kind)}, 1, index, profile);
        for (const SubjectResult& judged : run_case(plan, {.attempts = 0}).subjects)
          evidence.add(judged.evidence);
      }
      EXPECT_GT(rows(), 0U) << law->name() << " on " << kind->name();
    }
  }
}

TEST(Metamorphic, NeedsNoReference) {
  const Law& law = law_named("a_b_a");
  const Subject* mutant = contracts().find_subject("layered.vector@mutant:clone_drops_pending");
  ASSERT_NE(mutant, nullptr);
  bool failed = false;
  for (std::uint64_t index = 0; index < 100 && !failed; ++index) {
    CasePlan plan = random_case(contracts(), law, {mutant}, 1, index, Profile::kOriginal);
    plan.baseline = nullptr;
    failed = run_case(plan, {.attempts = 0}).subjects.back().verdict.failed();
  }
  EXPECT_TRUE(failed);
}

TEST(Metamorphic, ALawWithNothingToChangeIsVacuous) {
  CasePlan plan =
      random_case(contracts(), law_named("a_b_a"),
                  {contracts().find_subject("layered.vector@optimized")}, 1, 0, Profile::kOriginal);
  EXPECT_EQ(run_script(plan, *plan.subjects.front(), {}).outcome, Outcome::kVacuous);
}

TEST(Metamorphic, TellsWhatWasDrawnFromWhatWasVaried) {
  const Law& law = law_named("placement_does_not_show");
  const Subject* mutant = contracts().find_subject("provider.paged@mutant:table_taken_for_run");
  ASSERT_NE(mutant, nullptr);
  for (std::uint64_t index = 0; index < 100; ++index) {
    const CasePlan plan = random_case(contracts(), law, {mutant}, 1, index, Profile::kOriginal);
    const Verdict verdict = run_case(plan, {.attempts = 0}).subjects.back().verdict;
    if (verdict.outcome != Outcome::kMismatch) continue;
    EXPECT_NE(verdict.text().find("original script: "), std::string::npos) << verdict.text();
    EXPECT_TRUE(verdict.text().find(" blocks taken in another order: ") != std::string::npos)
        << verdict.text();
    return;
  }
  FAIL() << "not caught";
}

// The first failure of a mutant under a law, shrunk.
Shrunk first_failure(const char* law, const char* name, std::vector<const Law*> simpler = {}) {
  const Subject* mutant = contracts().find_subject(name);
  for (std::uint64_t index = 0; index < 200; ++index) {
    CasePlan plan =
        random_case(contracts(), law_named(law), {mutant}, 1, index, Profile::kOriginal);
    plan.simpler_laws = simpler;
    const SubjectResult judged = run_case(plan, {}).subjects.back();
    if (judged.repeats()) return *judged.shrunk;
  }
  ADD_FAILURE() << name << " is not caught by " << law;
  return {};
}

bool has_note(const ScriptLine& line, const std::string& beginning) {
  return std::ranges::any_of(line.notes,
                             [&](const std::string& note) { return note.starts_with(beginning); });
}

TEST(Metamorphic, AReportShowsWhatTheLawAddsAndBothResults) {
  const Shrunk shrunk =
      first_failure("placement_does_not_show", "provider.paged@mutant:block_freed_twice");
  EXPECT_GT(std::ranges::count(shrunk.script, "+", &ScriptLine::mark), 0);
  const auto guilty = std::ranges::find(shrunk.script, ">", &ScriptLine::mark);
  ASSERT_NE(guilty, shrunk.script.end());
  EXPECT_EQ(guilty->op_index, shrunk.verdict.op_index);
  EXPECT_TRUE(has_note(*guilty, "original script returns: "));
  EXPECT_TRUE(has_note(*guilty, "this script returns: "));
}

TEST(Metamorphic, AReportShowsWhichAllocationFailsAndWhatIsDoneThen) {
  const Shrunk shrunk = first_failure("failed_allocation_changes_nothing",
                                      "provider.paged@mutant:failed_append_loses_blocks");
  const auto failing = std::ranges::find_if(
      shrunk.script, [](const ScriptLine& line) { return line.mark.ends_with('!'); });
  ASSERT_NE(failing, shrunk.script.end());
  EXPECT_TRUE(has_note(*failing, "allocation"));
  EXPECT_NE(failing->notes.front().find(" fail"), std::string::npos) << failing->notes.front();
}

TEST(Metamorphic, TheSimplestLawThatAScriptFailsIsReported) {
  const char* mutant = "provider.paged@mutant:reads_whole_blocks";
  EXPECT_EQ(first_failure("a_b_a", mutant).law, "a_b_a");
  EXPECT_EQ(first_failure("a_b_a", mutant, contracts().laws()).law, "agrees_with_reference");
}

TEST(Metamorphic, CutsAnAxis) {
  const Tensor tensor =
      tensor_of({2, 3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Tensor middle = axis_range(tensor, 1, 1, 3);
  EXPECT_EQ(middle, tensor_of({2, 2, 2}, std::vector<float>{3, 4, 5, 6, 9, 10, 11, 12}));
  EXPECT_EQ(axis_range(tensor, 0, 1, 2),
            tensor_of({1, 3, 2}, std::vector<float>{7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(axis_range(tensor, 2, 0, 2), tensor);
}

}  // namespace
}  // namespace kvo
