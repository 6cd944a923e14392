// Laws of contract `snapshot` that catch a fault alone.
#include "properties/campaign/law_trial.hpp"

namespace kvo {

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

}  // namespace kvo
