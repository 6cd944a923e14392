// properties/views/oracle.hpp: the oracle of contract `views`: what each layer was given, token by
// token, says all that may be shown.
//
// Judged   every token of every view, packed view and contiguous piece, earlier views that are read
//          again included; where they begin and are cut; lengths, limits and places; and that
//          blocks come back: exactly while no cache was forked, afterwards within bounds.
// Skipped  earlier views that are stale (MK-24), and what is_on_gpu says of mixed layers (MK-27).
// Unseen   errors: what failed has changed nothing, but need not have failed.
#pragma once

#include <memory>

#include "properties/runner/oracle.hpp"

namespace kvo::views {

/// The oracle of a case; null for kinds of other contracts.
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);

}  // namespace kvo::views
