// reference/events/make.hpp: the followers of this folder, by kind.
#pragma once

#include <memory>

#include "reference/events/cache.hpp"

namespace kvo::events {

/// The follower of a kind: in profile documented the literal one; with quirks of its index its own.
[[nodiscard]] std::unique_ptr<Follower> make_reference(Form form, const Config& config,
                                                       QuirkSet<Quirk> quirks);

}  // namespace kvo::events
