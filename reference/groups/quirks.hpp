// reference/groups/quirks.hpp: where profile original parts from documented.
//
// Source   the paragraphs "Documented" of docs/rules/groups.md. What both profiles answer with
//          kPrecondition has no row: hits of a running request (GR-34), zero inside a block
//          (GR-50).
#pragma once

#include <array>

#include "reference/contract/values/quirk.hpp"

namespace kvo::groups {

// clang-format off
KVO_QUIRKS(Quirk,
    (kSetupAborts, "GR-9", "a config that the engine cannot serve aborts at setup, or at a lookup"),
    (kOddChunks, "GR-15", 
     "chunks that are no whole blocks: a hit lacks rows that the next token sees"),
    (kDroppedTwice, "GR-14", "under draft heads a short prefix in small windows is dropped twice"),
    (kNoPromptAborts, "PX-48", "looking up an empty prompt aborts"),
    (kLooksBeyondKeys, "GR-61", "looking up a block that has no key yet aborts"),
    (kWindowBehindLoads, "GR-18",
     "a window that holds less than the hit counts as loaded, though nothing loads it"),
    (kReportsAllBlocks, "GR-19", "a report has null blocks, and aborts at a hit inside a block"),
    (kRetainsOneRun, "GR-22",
     "with retention 0 a prompt that parts within its last blocks hits no window"),
    (kStateOfAnotherLength, "GR-21",
     "a state is found under the key of its block's end, though it is of another length"),
    (kTailsUnused, "GR-25", "tails of prompts get keys where no lookup asks for them"),
    (kStoredSpan, "GR-27",
     "a stored event has the tokens of blocks that got no key, and a parent that was never stored"),
    (kRemovedWhileHeld, "GR-27",
     "a removed event is sent though another block still carries the key"),
    (kStaleHitsAdopted, "GR-34",
     "a hit block that was handed out since the lookup is adopted: another's rows are read"),
    (kKeysBeforeRows, "GR-39",
     "a request that is freed leaves keys on blocks that it did not compute"),
    (kPopMixesGroups, "GR-39", "releasing what pop gave from its end begins with the last group"),
    (kLoadedStateUncounted, "GR-41",
     "the block of a loaded state is not counted before it is taken"),
    (kNegativeNeed, "GR-41", "a group of states may ask for less than no block"),
    (kVetoesUncounted, "GR-12", "no figure says how much one group's lack cost the others"),
    (kCountsBelowZero, "PX-47", "a block is released more often than it was pinned"),
    (kEvictTakesAnyNumber, "PX-36",
     "evict counts negative numbers from the end, and aborts at those beyond it"))

KVO_QUIRKS(PlanQuirk,
    (kMlaWindowsAbort, "GR-51", "without several groups, windows of mla beside full layers abort"))
// clang-format on

}  // namespace kvo::groups
