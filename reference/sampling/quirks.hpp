// reference/sampling/quirks.hpp: where sampling in profile original parts from documented.
//
// Source   the section "Profile documented" of the rules ZF-90 to ZF-99. ZF-96 (equal
//          probabilities in index order) has no row: beyond 12 entries the original leaves their
//          order open, so index order is right in both profiles.
#pragma once

#include <array>

#include "reference/contract/values/quirk.hpp"

namespace kvo::sampling {

// clang-format off
KVO_QUIRKS(Quirk,
    (kNoPositionAborts, "ZF-90", "logits without a position abort"),
    (kEmptyVocabularyAborts, "ZF-91",
     "an empty vocabulary aborts, unless a penalty is on and the temperature is not above 0"),
    (kFirstNanWins, "ZF-91", "without a penalty a NaN at index 0 is the greedy choice"),
    (kEmptyVocabularyIsTokenZero, "ZF-92",
     "with a penalty the greedy choice of an empty vocabulary is token 0"))
// clang-format on

}  // namespace kvo::sampling
