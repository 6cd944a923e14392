// reference/block_pool/quirks.hpp: where a pool of profile original parts from documented.
//
// Source   the section "Profile documented" of the rules ZF-19 to ZF-26. ZF-20 (cells of 4 bytes)
//          and ZF-26 (`used` cleared outside the lock) have no row: cells are f32 here, and no
//          script can see the lock.
#pragma once

#include <array>

#include "reference/contract/values/quirk.hpp"

namespace kvo::block_pool {

// clang-format off
KVO_QUIRKS(Quirk,
    (kPoolSizeOverflowAborts, "ZF-1", "a product of sizes that overflows aborts"),
    (kAllocKeepsUsed, "ZF-23", "a block is handed out with the `used` that its last owner set"),
    (kFreeTakesFreeBlocks, "ZF-24",
     "a block that is free already is pushed again, and gets two owners"),
    (kFreeTakesForeignBlocks, "ZF-24", "anyone can free a block that somebody else holds"),
    (kFreeNullAborts, "ZF-24", "free of a null block aborts"))
// clang-format on

}  // namespace kvo::block_pool
