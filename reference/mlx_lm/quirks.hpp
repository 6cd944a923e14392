// reference/mlx_lm/quirks.hpp: where profile original parts from documented.
//
// Source   the paragraphs "Documented" of docs/rules/mlx_lm.md.
#pragma once

#include <array>

#include "reference/contract/values/quirk.hpp"

namespace kvo::mlx_lm {

// clang-format off
KVO_QUIRKS(Quirk,
    (kFailureLeavesSteps, "ML-A4", "a call that fails keeps its steps before the failure"),
    (kNegativeTrimGrows, "ML-4", "a negative trim moves the offset forward over stale slots"),
    (kConcatenateTrimUndone, "ML-8", "trimmed tokens of a concatenate cache come back"),
    (kEmptyStateRefused, "ML-8", "an empty concatenate cache cannot be made from its state"),
    (kTrimUnguarded, "ML-14", "a ring that is not trimmable is trimmed all the same"),
    (kKeptSlotsRoll, "ML-15", "the window mask of one token rolls the kept slots, too"),
    (kSlidChunkTrimmed, "ML-22", "a chunk whose front was dropped is trimmed all the same"),
    (kEmptyHasNoBytes, "ML-30", "an empty quantized cache does not know its bytes"),
    (kFilterNeedsRows, "ML-43", "a batch cannot be filtered to no rows"),
    (kNoteForgotten, "ML-46", "a batch that is made from its state lacks the note of its padding"),
    (kPaddingHidesToken, "ML-55",
     "on a rotated ring the mask of a chunk hides a padded row's oldest token"),
    (kOneTokenPrefixIgnored, "ML-70", "a stored prefix of one token is found only if trimmable"))
// clang-format on

}  // namespace kvo::mlx_lm
