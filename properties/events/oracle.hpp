// properties/events/oracle.hpp: the comparison law of followers, with weaknesses that are declared.
#pragma once

#include <memory>

#include "properties/runner/oracle.hpp"
#include "reference/events/operations.hpp"

namespace kvo::events {

/// The oracle of a case whose follower has these weaknesses, and no others.
[[nodiscard]] std::unique_ptr<Oracle> law_of(Form form, const Config& config,
                                             QuirkSet<Quirk> weaknesses);

}  // namespace kvo::events
