// reference/prefix/quirks.hpp: where profile original parts from documented.
//
// Source   the section "Profile documented" of the rules PX-1 to PX-89. What both profiles answer
//          with kPrecondition has no row: hits that a request may not have (PX-28), a segment that
//          begins within a page (PX-81), a second group (PX-82), a lock from before a reset
//          (PX-79).
#pragma once

#include <array>

#include "reference/contract/values/quirk.hpp"

namespace kvo::prefix {

// clang-format off
KVO_QUIRKS(Quirk,
    (kStaleHitsAdopted, "PX-47",
     "a hit block that was handed out since the lookup is adopted: another's rows are read"),
    (kCountsBelowZero, "PX-47", "a block is released more often than it was pinned"),
    (kEvictTakesAnyNumber, "PX-36",
     "evict counts negative numbers from the end, and aborts at those beyond it"),
    (kNoPromptAborts, "PX-48", "looking up an empty prompt aborts"),
    (kLooksBeyondKeys, "PX-48", "looking up a block that has no key yet aborts"),
    (kDraftsInChunks, "PX-48", "draft heads with chunks are accepted, and each lookup aborts"),
    (kStoredSpan, "PX-40",
     "a stored event has the tokens of blocks that got no key, and a parent that was never stored"),
    (kRemovedWhileHeld, "PX-40",
     "a removed event is sent though another block still carries the key"),
    (kRestIsRenewed, "PX-79", "a hit that ends inside a node renews the rest of it, too"),
    (kSplitIsNew, "PX-65", "the front part of a split is as young as the lookup that split it"),
    (kPromptIsLifted, "PX-87", "without priorities a prompt stands above its output all the same"),
    (kTlruAborts, "PX-71", "the policy tlru is accepted, and evicting aborts"),
    (kUnlockUnguarded, "PX-79", "unlocking counts below 0, and later locks protect nothing"),
    (kGoneNodesLocked, "PX-79", "locks of an evicted node are counted, and spoil the sizes"),
    (kNoSlotsAborts, "PX-77", "asking an empty tree for all slots aborts"),
    (kEventKeysLackExtra, "PX-77", "namespaces that differ in the extra key share keys of events"),
    (kFreesAnything, "PX-85", "a slot that is free is freed again, and gets two owners"))
// clang-format on

/// Those of each kind.
inline constexpr std::array kBlocksQuirks{Quirk::kStaleHitsAdopted,    Quirk::kCountsBelowZero,
                                          Quirk::kEvictTakesAnyNumber, Quirk::kNoPromptAborts,
                                          Quirk::kLooksBeyondKeys,     Quirk::kDraftsInChunks,
                                          Quirk::kStoredSpan,          Quirk::kRemovedWhileHeld};
inline constexpr std::array kRadixQuirks{
    Quirk::kRestIsRenewed, Quirk::kSplitIsNew,         Quirk::kPromptIsLifted,
    Quirk::kTlruAborts,    Quirk::kUnlockUnguarded,    Quirk::kGoneNodesLocked,
    Quirk::kNoSlotsAborts, Quirk::kEventKeysLackExtra, Quirk::kFreesAnything};

}  // namespace kvo::prefix
