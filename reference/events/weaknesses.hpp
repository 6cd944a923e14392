// reference/events/weaknesses.hpp: the declared weaknesses of followers (EV-95) as conventions.
#pragma once

#include <span>

#include "reference/contract/subject/conventions.hpp"
#include "reference/events/cache.hpp"

namespace kvo::events {

/// One for each quirk of the kind, and `declared_weaknesses` for all of them together.
[[nodiscard]] std::span<const ConventionInfo> weaknesses_of(Form form);

}  // namespace kvo::events
