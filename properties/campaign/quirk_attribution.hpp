// properties/campaign/quirk_attribution.hpp: where a recorded log parts from profile documented,
// and by which quirks.
//
// A log holds what a real system did, quirks included. The reference replays it in profile
// documented; where it differs, quirks of its kind are tried, one or as few as explain it, and the
// replay goes on with them. What is left in the end is no quirk that the contract names: a fault,
// of the log or of the reference.
#pragma once

#include <vector>

#include "properties/runner/run_case.hpp"

namespace kvo {

/// What quirks explain of a recorded case.
struct QuirkAttribution {
  std::vector<Attribution> explained = {};  ///< in order of appearance
  Verdict rest = {};                        ///< of the replay with all these quirks
};

/// Explains the recorded observations of a case, whose kind has the reference `reference`.
[[nodiscard]] QuirkAttribution attribute_quirks(const Subject& reference,
                                                const traces::Case& recorded);

}  // namespace kvo
