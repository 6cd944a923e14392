// reference/snapshot/quirks.hpp: where profile original parts from documented.
//
// Source   the section "Profile documented" of the rules MR-1 to MR-74.
#pragma once

#include <array>

#include "reference/contract/values/quirk.hpp"

namespace kvo::snapshot {

// clang-format off
KVO_QUIRKS(Quirk,
    (kMisfitIsSilent, "MR-A6",
     "rows that do not fit the buffer are lost without an error, and the counters move on"),
    (kSecondCloseAborts, "MR-4", "a snapshot that is closed or used again after its end aborts"),
    (kSharedReference, "MR-48",
     "a restored recurrent state and its snapshot count references together: a second close of the "
     "snapshot goes unnoticed"),
    (kTypeWidens, "MR-10", "a buffer that grows takes the wider of its own and the rows' type"),
    (kNothingMakesABuffer, "MR-10", "an update without rows makes a buffer of no rows"),
    (kRestoresBelowFrom, "MR-14", "a target below the snapshot's begin is reached all the same"),
    (kMergeLosesOneSide, "MR-15", "merging with nothing closes the side that is there"),
    (kMergeUnchecked, "MR-15", "snapshots that do not adjoin are merged"),
    (kChunkDropsOlder, "MR-21",
     "a chunk on a ring that has wrapped throws away the older part of the window"),
    (kShortRing, "MR-22", "in a ring shorter than its window each token overwrites the first slot"),
    (kNothingMovesTheRing, "MR-22", "an update without rows moves the write position"),
    (kLiveChunk, "MR-23", "rows that a chunk returned show what later updates write"),
    (kForeignWindow, "MR-27", "a snapshot of a ring of another window is restored"),
    (kAnyWindow, "MR-27", "a window of no token is accepted"),
    (kMergeDestroysParent, "MR-28", "a whole state merged with nothing behind it is lost"),
    (kStateIsWiped, "MR-40", "asking with another batch or type zeroes a state"),
    (kStateUnchecked, "MR-41", "a state of any shape is taken"),
    (kAdvancesBackwards, "MR-42", "a negative number of tokens is taken back"),
    (kBeginForgets, "MR-66", "a session that was not closed is not filed"),
    (kNullLayerIncomplete, "MR-67",
     "with a layer that is null a node is paged out again and again"),
    (kPageInStops, "MR-67", "a snapshot that ends before its node ends the paging in"),
    (kFrontierBehind, "MR-69", "a capture below the frontier's end is passed over"),
    (kUserLeafGrows, "MR-70", "a marked leaf without snapshots is extended, and its mark moves"),
    (kShortSequence, "MR-71", "filing tokens that the session does not have aborts"),
    (kNullLayerAborts, "MR-73", "merging nodes aborts over a layer that is null"),
    (kMergesActive, "MR-74",
     "evicting merges a node of the active path: its tokens are filed under another prefix"),
    (kUserNodeMerged, "MR-74", "evicting merges a marked node away"))
// clang-format on

}  // namespace kvo::snapshot
