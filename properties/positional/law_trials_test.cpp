// Laws of contract `positional` that catch a fault alone.
#include "properties/campaign/law_trial.hpp"

namespace kvo {

INSTANTIATE_TEST_SUITE_P(
    Positional, EachLaw,
    testing::Values(
        LawTrial{"prefill_in_chunks", "positional.causal@mutant:mask_starts_at_batch", 100},
        LawTrial{"placement_does_not_show", "positional.causal@mutant:mask_by_cell_order", 100},
        LawTrial{"order_of_independent_sequences",
                 "positional.causal@mutant:shifts_first_sequence_only", 400},
        LawTrial{"order_of_independent_sequences", "positional.causal@mutant:one_owner_sees", 400},
        LawTrial{"a_b_a", "positional.causal@mutant:rollback_keeps_one", 100}));

}  // namespace kvo
