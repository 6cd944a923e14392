// Laws of contract `sampling` that catch a fault alone.
#include "properties/campaign/law_trial.hpp"

namespace kvo {

INSTANTIATE_TEST_SUITE_P(
    Sampling, EachLaw,
    testing::Values(
        LawTrial{"sample_is_its_steps", "sampling.pipeline@mutant:first_position_used", 200},
        LawTrial{"order_of_generated_ids", "sampling.pipeline@mutant:penalizes_the_last_id_only",
                 200},
        LawTrial{"order_of_vocabulary", "sampling.pipeline@mutant:last_token_never_greedy", 200}));

}  // namespace kvo
