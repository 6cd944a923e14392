// Laws of contract `provider` that catch a fault alone.
#include "properties/campaign/law_trial.hpp"

namespace kvo {

INSTANTIATE_TEST_SUITE_P(
    Provider, EachLaw,
    testing::Values(LawTrial{"prefill_in_chunks", "provider.paged@mutant:page_looked_up_once", 100},
                    LawTrial{"placement_does_not_show", "provider.paged@mutant:table_taken_for_run",
                             100},
                    LawTrial{"a_b_a", "provider.contiguous@mutant:appends_behind_cut", 100}));

}  // namespace kvo
