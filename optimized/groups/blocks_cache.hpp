// optimized/groups/blocks_cache.hpp: `groups.blocks`, fast on a CPU.
//
// The rules of lookup, slots and registering are those of the reference
// (reference/groups/parts.hpp): each is there once, beside its rule, and the logs of the original
// and the laws judge it. What is the cache's own is what costs: contents are found by hash, free
// blocks and holders of a key are lists of links, a failed operation takes back what it changed
// instead of what it copied, and a step that changes nothing runs no rules. So a comparison with
// the reference judges these, and finds no fault that both rules share.
#pragma once

#include <memory>

#include "reference/groups/cache.hpp"

namespace kvo::optimized {

/// As groups::MakeBlocks.
[[nodiscard]] Result<std::unique_ptr<groups::BlockCache>> make_groups_cache(
    const groups::Options& options, QuirkSet<groups::Quirk> quirks);

}  // namespace kvo::optimized
