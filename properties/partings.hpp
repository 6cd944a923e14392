// properties/partings.hpp: where a recorded log parts from profile documented, and why.
//
// A log holds what a real system did, quirks included. The reference replays it in profile
// documented; where it differs, quirks of its kind are tried, one or as few as explain it, and the
// replay goes on with them. What is left in the end is no quirk that the contract names: a fault,
// of the log or of the reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/lockstep.hpp"
#include "traces/kvlog.hpp"

namespace kvo {

/// A difference between a log and profile documented that a quirk explains.
struct Parting {
  std::uint64_t op_index = 0;  ///< operation at which it shows, from 0
  std::string op;              ///< that operation's name
  QuirkInfo quirk;
};

struct Explanation {
  std::vector<Parting> partings = {};  ///< in order of appearance
  Verdict rest = {};                   ///< of the replay with all these quirks
};

/// Explains the recorded observations of a case, whose kind names its quirks.
[[nodiscard]] Explanation explain(const traces::Case& recorded);

}  // namespace kvo
