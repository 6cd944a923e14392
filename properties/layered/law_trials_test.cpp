// Laws of contract `layered` that catch a fault alone.
#include "properties/campaign/law_trial.hpp"

namespace kvo {

INSTANTIATE_TEST_SUITE_P(Layered, EachLaw,
                         testing::Values(LawTrial{
                             "a_b_a", "layered.vector@mutant:clone_drops_pending", 100}));

}  // namespace kvo
