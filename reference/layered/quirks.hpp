// reference/layered/quirks.hpp: where profile original parts from documented.
//
// What two builds of the followed cache do with one quirk may differ; the sentence says both.
// Source   the section "Profile documented" of the rules RS-1 to RS-19.
#pragma once

#include <array>

#include "reference/contract/values/quirk.hpp"

namespace kvo::layered {

// clang-format off
KVO_QUIRKS(Quirk,
    (kSizesUnchecked, "RS-2",
     "a product of sizes that overflows aborts where it is needed (debug) or wraps (release)"),
    (kLayerAborts, "RS-4", "a layer out of range aborts, and lengths are looked at before it"),
    (kLengthsUnchecked, "RS-6", "a row of a wrong length aborts (debug) or is stored (release)"),
    (kSecondAppendTaken, "RS-8", "a layer takes several rows within one token"),
    (kAdvanceUnchecked, "RS-8", "a token is counted whatever was appended"))
// clang-format on

}  // namespace kvo::layered
