// properties/runner/led_reference.hpp: a reference that makes the choices of a cache.
//
// Which free block is handed out, and whose key is lost for it, the rules may leave to a cache
// (ConventionInfo::chooses). The reference then makes the choice that the cache makes, as far as
// the rules allow it: what is held, hit and counted afterwards is compared as ever.
#pragma once

#include <span>

#include "properties/runner/run_case.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo {

/// The first of the subjects whose choices a reference must make; null: there is none.
[[nodiscard]] const Subject* chooser_among(std::span<const Subject* const> subjects);

/// `reference`, whose sessions make the choices of a session of `chooser` that is their own.
/// Requires  `chooser` outlives it, and answers the same operations alike.
[[nodiscard]] Subject led_by(const Subject& reference, const Subject& chooser);

/// Where a subject of the plan chooses, its baseline makes these choices, and is no subject itself.
void lead(CasePlan& plan);

}  // namespace kvo
