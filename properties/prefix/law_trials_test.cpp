// Laws of contract `prefix` that catch a fault alone.
#include "properties/campaign/law_trial.hpp"

namespace kvo {

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

}  // namespace kvo
