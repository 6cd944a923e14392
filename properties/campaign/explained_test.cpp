// Reports of mismatches say which block, cell, position, window or step is at fault.
#include <string>

#include <gtest/gtest.h>

#include "properties/campaign/kill.hpp"
#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"
#include "properties/runner/shrunk.hpp"
#include "traces/log/cases.hpp"

namespace kvo {
namespace {

struct Explained {
  std::string mutant;
  std::string sentence;  ///< a part of it
  Profile profile = Profile::kOriginal;

  friend void PrintTo(const Explained& trial, std::ostream* out) {  // NOLINT: GoogleTest's name
    *out << trial.mutant;
  }
};

class EveryExplained : public testing::TestWithParam<Explained> {};

TEST_P(EveryExplained, NamesTheCause) {
  const Subject* mutant = contracts().find_subject(GetParam().mutant);
  ASSERT_NE(mutant, nullptr);
  // A fault has several causes to show: not each script shows the one that has this sentence.
  constexpr std::uint64_t kSeeds = 8;
  std::string all;
  for (std::uint64_t seed = 1; seed <= kSeeds && all.find(GetParam().sentence) == std::string::npos;
       ++seed) {
    const auto kill = find_kill(contracts(), *mutant, seed, 200, GetParam().profile);
    ASSERT_TRUE(kill);
    all += kill->result.shrunk->verdict.text() + "\n";
    for (const std::string& line : kill->result.shrunk->inside) all += line + "\n";
  }
  EXPECT_NE(all.find(GetParam().sentence), std::string::npos) << all;
}

INSTANTIATE_TEST_SUITE_P(
    Reports, EveryExplained,
    testing::Values(
        Explained{"positional.swa@mutant:evicts_one_too_many",
                  "positions from 0 on stay (its last batch began at "},
        Explained{"positional.swa@mutant:window_one_short", "its window holds positions 0 to "},
        Explained{"snapshot.rotating@mutant:one_scale_a_chunk", "; the shown one has step "},
        Explained{"prefix.blocks@mutant:held_go_first", "is evicted, and was to stay"},
        Explained{"prefix.blocks@mutant:window_one_short", "the window of "},
        Explained{"cells.kv@mutant:shared_cells_are_taken",
                  "(position 0 of sequences 0, 1; window 1)", Profile::kDocumented},
        Explained{"cells.kv@mutant:masked_cell_one_early", "takes cell "}));

// Most scripts that show this fault end where no node is named.
TEST(Explained, NamesANodeThatEvictionMustLeave) {
  const auto cases = traces::read_cases("text", R"(kind snapshot.trie
case a_node_of_the_session
profile original
config layers ["kv"], limit_bytes 0
new
begin inputs [0]
feed tokens [0]
snapshot user false
begin inputs [0,0])",
                                        contracts().kind_finder());
  ASSERT_TRUE(cases) << cases.error().text();
  const Subject* mutant = contracts().find_subject("snapshot.trie@mutant:evicts_active");
  ASSERT_NE(mutant, nullptr);
  CasePlan plan =
      random_case(contracts(), *contracts().find_law("agrees_with_reference"),
                  {&contracts().reference_of(*mutant->kind), mutant}, 1, 0, Profile::kOriginal);
  plan.setup.config = cases->front().header.config;
  Script script;
  for (const traces::Step& step : cases->front().steps) script.push_back(step.op);
  const Verdict verdict = run_script(plan, *mutant, script);
  ASSERT_EQ(verdict.op_index, script.size() - 1) << verdict.text();
  std::string all;
  for (const std::string& line : explained(plan, *mutant, script, verdict)) all += line + "\n";
  EXPECT_NE(all.find("is on the path of the last session"), std::string::npos) << all;
}

TEST(Explained, NothingIsSaidOfASubjectThatAgrees) {
  const Subject* optimized = contracts().find_subject("positional.swa@optimized");
  const CasePlan plan = random_case(contracts(), *contracts().find_law("agrees_with_reference"),
                                    {optimized}, 1, 0, Profile::kOriginal);
  const Script script = script_until(plan, 20);
  EXPECT_TRUE(explained(plan, *optimized, script, run_script(plan, *optimized, script)).empty());
  const Verdict pretended{.outcome = Outcome::kMismatch, .op_index = script.size() - 1};
  EXPECT_TRUE(explained(plan, *optimized, script, pretended).empty());
}

}  // namespace
}  // namespace kvo
