// Laws that need no reference catch a fault alone. Each contract has its list.
#include <cstdint>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"
#include "properties/runner/run_case.hpp"

namespace kvo {

/// A law, and a mutant that it must catch alone within so many cases.
struct LawTrial {
  std::string law;
  std::string mutant;
  std::uint64_t cases;

  friend void PrintTo(const LawTrial& trial, std::ostream* out) {  // NOLINT: GoogleTest's name
    *out << trial.law << " on " << trial.mutant;
  }
};

class EachLaw : public testing::TestWithParam<LawTrial> {};

TEST_P(EachLaw, CatchesAFaultAlone) {
  constexpr std::size_t kLongestScript = 10;
  const LawTrial& trial = GetParam();
  const Subject* mutant = contracts().find_subject(trial.mutant);
  ASSERT_NE(mutant, nullptr);
  const Law* law = contracts().find_law(trial.law);
  ASSERT_NE(law, nullptr);
  for (std::uint64_t index = 0; index < trial.cases; ++index) {
    const CasePlan plan = random_case(contracts(), *law, {mutant}, 1, index, Profile::kOriginal);
    const CaseResult result = run_case(plan, {});
    const SubjectResult& judged = result.subjects.back();
    if (!judged.verdict.failed()) continue;
    EXPECT_TRUE(judged.repeats()) << "a shrunk script still fails";
    EXPECT_LE(judged.shrunk->operations, kLongestScript);
    return;
  }
  FAIL() << "not caught within " << trial.cases << " cases";
}

INSTANTIATE_TEST_SUITE_P(Layered, EachLaw,
                         testing::Values(LawTrial{
                             "a_b_a", "layered.vector@mutant:clone_drops_pending", 100}));

INSTANTIATE_TEST_SUITE_P(
    Provider, EachLaw,
    testing::Values(LawTrial{"prefill_in_chunks", "provider.paged@mutant:page_looked_up_once", 100},
                    LawTrial{"placement_does_not_show", "provider.paged@mutant:table_taken_for_run",
                             100},
                    LawTrial{"a_b_a", "provider.contiguous@mutant:appends_behind_cut", 100}));

INSTANTIATE_TEST_SUITE_P(
    Positional, EachLaw,
    testing::Values(
        LawTrial{"prefill_in_chunks", "positional.causal@mutant:mask_starts_at_batch", 100},
        LawTrial{"placement_does_not_show", "positional.causal@mutant:mask_by_cell_order", 100},
        LawTrial{"order_of_independent_sequences",
                 "positional.causal@mutant:shifts_first_sequence_only", 400},
        LawTrial{"order_of_independent_sequences", "positional.causal@mutant:one_owner_sees", 400},
        LawTrial{"a_b_a", "positional.causal@mutant:rollback_keeps_one", 100}));

INSTANTIATE_TEST_SUITE_P(
    Snapshot, EachLaw,
    testing::Values(
        LawTrial{"a_b_a", "snapshot.rotating@mutant:snapshot_without_index", 200},
        LawTrial{"split_then_merge", "snapshot.kv@mutant:split_shares_a_token", 100},
        LawTrial{"snapshots_do_not_change", "snapshot.kv@mutant:writes_into_snapshots", 400},
        LawTrial{"snapshots_do_not_change", "snapshot.rotating@mutant:writes_into_snapshots", 100},
        LawTrial{"fork_then_write", "snapshot.rotating@mutant:writes_into_snapshots", 100},
        LawTrial{"recompute_equivalence", "snapshot.kv@mutant:restores_to_the_end", 100},
        LawTrial{"recompute_equivalence", "snapshot.rotating@mutant:window_one_short", 100},
        LawTrial{"recompute_equivalence", "snapshot.recurrent@mutant:one_side_restored", 100},
        LawTrial{"recompute_equivalence", "snapshot.trie@mutant:leaf_not_paged_out", 200},
        LawTrial{"recompute_equivalence", "snapshot.trie@mutant:split_keeps_snapshots_below",
                 200}));

INSTANTIATE_TEST_SUITE_P(
    Sampling, EachLaw,
    testing::Values(
        LawTrial{"sample_is_its_steps", "sampling.pipeline@mutant:first_position_used", 200},
        LawTrial{"order_of_generated_ids", "sampling.pipeline@mutant:penalizes_the_last_id_only",
                 200},
        LawTrial{"order_of_vocabulary", "sampling.pipeline@mutant:last_token_never_greedy", 200}));

INSTANTIATE_TEST_SUITE_P(
    Views, EachLaw,
    testing::Values(
        LawTrial{"prefill_in_chunks", "views.paged@mutant:decode_writes_at_the_front", 100},
        LawTrial{"a_b_a", "views.paged@mutant:packed_rows_survive", 100},
        LawTrial{"readings_agree", "views.paged@mutant:packed_rows_survive", 100},
        LawTrial{"readings_agree", "views.paged@mutant:attention_without_the_last_token", 100},
        LawTrial{"paging_does_not_show", "views.paged@mutant:truncate_drops_the_cut_block", 100},
        LawTrial{"paging_does_not_show", "views.paged@mutant:first_owner_frees_for_all", 200}));

INSTANTIATE_TEST_SUITE_P(
    Prefix, EachLaw,
    testing::Values(
        LawTrial{"order_of_independent_sequences", "prefix.blocks@mutant:request_in_ten_bits", 20},
        LawTrial{"recompute_equivalence", "prefix.blocks@mutant:hit_shorter_than_window", 100},
        LawTrial{"recompute_equivalence", "prefix.blocks@mutant:loaded_tokens_not_counted", 100},
        LawTrial{"recompute_equivalence", "prefix.blocks@mutant:key_stays_in_index", 100},
        LawTrial{"recompute_equivalence", "prefix.blocks@mutant:keys_are_not_chained", 100},
        LawTrial{"recompute_equivalence", "prefix.blocks@mutant:fast_free_hits_not_counted", 200},
        LawTrial{"recompute_equivalence", "prefix.radix@mutant:split_drops_the_lock", 100},
        LawTrial{"recompute_equivalence", "prefix.radix@mutant:salt_is_forgotten", 100},
        LawTrial{"recompute_equivalence", "prefix.radix@mutant:row_keeps_freed_slots", 100},
        LawTrial{"recompute_equivalence", "prefix.radix@mutant:page_freed_for_each_slot", 100}));

INSTANTIATE_TEST_SUITE_P(
    Cells, EachLaw,
    testing::Values(
        LawTrial{"recompute_equivalence", "cells.meta@mutant:owner_stays", 100},
        LawTrial{"recompute_equivalence", "cells.meta@mutant:shift_is_the_last_one", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:masked_cell_one_early", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:shared_cells_are_taken", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:removed_by_cell", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:first_stream_is_turned", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:saved_to_the_head", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:mask_by_cell", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:fast_rows_not_copied_behind", 100},
        LawTrial{"recompute_equivalence", "cells.iswa@mutant:rehearsal_is_not_undone", 100},
        LawTrial{"a_b_a", "cells.iswa@mutant:rehearsal_is_not_undone", 100},
        LawTrial{"saved_and_loaded_again", "cells.kv@mutant:saved_to_the_head", 100}));

}  // namespace kvo
