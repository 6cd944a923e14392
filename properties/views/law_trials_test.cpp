// Laws of contract `views` that catch a fault alone.
#include "properties/campaign/law_trial.hpp"

namespace kvo {

INSTANTIATE_TEST_SUITE_P(
    Views, EachLaw,
    testing::Values(
        LawTrial{"prefill_in_chunks", "views.paged@mutant:decode_writes_at_the_front", 100},
        LawTrial{"a_b_a", "views.paged@mutant:packed_rows_survive", 100},
        LawTrial{"readings_agree", "views.paged@mutant:packed_rows_survive", 100},
        LawTrial{"readings_agree", "views.paged@mutant:attention_without_the_last_token", 100},
        LawTrial{"paging_does_not_show", "views.paged@mutant:truncate_drops_the_cut_block", 100},
        LawTrial{"paging_does_not_show", "views.paged@mutant:first_owner_frees_for_all", 200}));

}  // namespace kvo
