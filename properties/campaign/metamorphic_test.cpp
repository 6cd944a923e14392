// Each law that needs no reference catches faults by itself, says something on each of its kinds,
// and shrinks.
#include "properties/campaign/metamorphic.hpp"

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"

namespace kvo {
namespace {

// A law, and a mutant that it must catch alone within so many cases.
struct Trial {
  std::string law;
  std::string mutant;
  std::uint64_t cases;
};

void PrintTo(const Trial& trial, std::ostream* out) {  // NOLINT: GoogleTest's name
  *out << trial.law << " on " << trial.mutant;
}

const Law& law_named(const std::string& name) {
  const Law* law = contracts().find_law(name);
  EXPECT_NE(law, nullptr) << name;
  return *law;
}

class EachLaw : public testing::TestWithParam<Trial> {};

TEST_P(EachLaw, CatchesAFaultAlone) {
  constexpr std::size_t kLongestScript = 10;
  const Trial& trial = GetParam();
  const Subject* mutant = contracts().find_subject(trial.mutant);
  ASSERT_NE(mutant, nullptr);
  const Law& law = law_named(trial.law);
  for (std::uint64_t index = 0; index < trial.cases; ++index) {
    const CasePlan plan = random_case(contracts(), law, {mutant}, 1, index, Profile::kOriginal);
    const CaseResult result = run_case(plan, {});
    const SubjectResult& judged = result.subjects.back();
    if (!judged.verdict.failed()) continue;
    ASSERT_TRUE(judged.repro.has_value());
    EXPECT_TRUE(judged.repro->verdict.failed()) << "a shrunk script still fails";
    EXPECT_LE(judged.repro->script.steps.size(), kLongestScript);
    return;
  }
  FAIL() << "not caught within " << trial.cases << " cases";
}

INSTANTIATE_TEST_SUITE_P(
    Metamorphic, EachLaw,
    testing::Values(
        Trial{"prefill_in_chunks", "provider.paged@mutant:page_looked_up_once", 100},
        Trial{"prefill_in_chunks", "positional.causal@mutant:mask_starts_at_batch", 100},
        Trial{"placement_does_not_show", "provider.paged@mutant:table_taken_for_run", 100},
        Trial{"placement_does_not_show", "positional.causal@mutant:mask_by_cell_order", 100},
        Trial{"order_of_independent_sequences",
              "positional.causal@mutant:shifts_first_sequence_only", 400},
        Trial{"order_of_independent_sequences", "positional.causal@mutant:one_owner_sees", 400},
        Trial{"a_b_a", "provider.contiguous@mutant:appends_behind_cut", 100},
        Trial{"a_b_a", "layered.vector@mutant:clone_drops_pending", 100},
        Trial{"a_b_a", "positional.causal@mutant:rollback_keeps_one", 100},
        Trial{"prefill_in_chunks", "views.paged@mutant:decode_writes_at_the_front", 100},
        Trial{"a_b_a", "views.paged@mutant:packed_rows_survive", 100},
        Trial{"readings_agree", "views.paged@mutant:packed_rows_survive", 100},
        Trial{"readings_agree", "views.paged@mutant:attention_without_the_last_token", 100},
        Trial{"paging_does_not_show", "views.paged@mutant:truncate_drops_the_cut_block", 100},
        Trial{"paging_does_not_show", "views.paged@mutant:first_owner_frees_for_all", 200},
        Trial{"sample_is_its_steps", "sampling.pipeline@mutant:first_position_used", 200},
        Trial{"order_of_generated_ids", "sampling.pipeline@mutant:penalizes_the_last_id_only", 200},
        Trial{"order_of_vocabulary", "sampling.pipeline@mutant:last_token_never_greedy", 200},
        Trial{"a_b_a", "snapshot.rotating@mutant:snapshot_without_index", 200},
        Trial{"split_then_merge", "snapshot.kv@mutant:split_shares_a_token", 100},
        Trial{"snapshots_do_not_change", "snapshot.kv@mutant:writes_into_snapshots", 400},
        Trial{"snapshots_do_not_change", "snapshot.rotating@mutant:writes_into_snapshots", 100},
        Trial{"fork_then_write", "snapshot.rotating@mutant:writes_into_snapshots", 100},
        Trial{"recompute_equivalence", "snapshot.kv@mutant:restores_to_the_end", 100},
        Trial{"recompute_equivalence", "snapshot.rotating@mutant:window_one_short", 100},
        Trial{"recompute_equivalence", "snapshot.recurrent@mutant:one_side_restored", 100},
        Trial{"recompute_equivalence", "snapshot.trie@mutant:leaf_not_paged_out", 200},
        Trial{"recompute_equivalence", "snapshot.trie@mutant:split_keeps_snapshots_below", 200}));

TEST(Metamorphic, EveryLawSaysSomethingOnEachOfItsKinds) {
  constexpr std::uint64_t kCases = 40;
  for (const char* name :
       {"prefill_in_chunks", "placement_does_not_show", "order_of_independent_sequences", "a_b_a",
        "sample_is_its_steps", "order_of_generated_ids", "order_of_vocabulary", "split_then_merge",
        "snapshots_do_not_change", "fork_then_write", "readings_agree", "paging_does_not_show"}) {
    const Law& law = law_named(name);
    for (const CacheKind* kind : contracts().kinds()) {
      if (!law.applies_to(*kind) || contracts().generator_of(*kind) == nullptr) continue;
      Evidence evidence;
      for (std::uint64_t index = 0; index < kCases && evidence.compared == 0; ++index) {
        const CasePlan plan = random_case(contracts(), law, {&contracts().reference_of(*kind)}, 1,
                                          index, Profile::kOriginal);
        for (const SubjectResult& judged : run_case(plan, {.attempts = 0}).subjects)
          evidence.add(judged.evidence);
      }
      EXPECT_GT(evidence.compared, 0U) << name << " on " << kind->name();
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
    EXPECT_NE(verdict.text().find(" as drawn, got "), std::string::npos) << verdict.text();
    EXPECT_TRUE(verdict.text().find(" placed elsewhere") != std::string::npos) << verdict.text();
    return;
  }
  FAIL() << "not caught";
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
