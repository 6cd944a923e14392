// reference/positional/quirks.hpp: where profile original parts from documented.
//
// Source   the section "Profile documented" of the rules OK-1 to OK-91.
#pragma once

#include "reference/contract/values/quirk.hpp"

namespace kvo::positional {

// clang-format off
KVO_QUIRKS(Quirk,
           (kFullEvicts, "OK-22",
            "what was evicted for a batch that did not fit stays evicted"),
           (kListNeverApplied, "OK-40",
            "a list of rows that see ahead, set without context, is never applied"),
           (kCopyOntoItselfEmpties, "OK-54",
            "a prefix copied onto its own sequence empties that"),
           (kAnythingResumes, "OK-55",
            "with unbounded memory a sequence may resume anywhere"),
           (kNothingToResume, "OK-57",
            "with bounded memory a sequence without tokens cannot begin at 0"),
           (kHolesUnnoticed, "OK-58",
            "positions missing amid a window do not keep a sequence from resuming"),
           (kWindowIncomplete, "OK-60",
            "a removal in the middle may leave a window incomplete"),
           (kForeignRowsConverted, "OK-65",
            "rows between those that move go through the shift function, too"),
           (kNothingToMoveRefused, "OK-66",
            "a finite end needs a shift function even where nothing moves"),
           (kPositionsMoveFirst, "OK-66",
            "positions stay moved when the shift function fails"),
           (kSharedHalfRemoved, "OK-67",
            "cells before a shared one are gone or moved when it stops the removal"),
           (kInvertedRangeMovesUp, "OK-68",
            "a range whose end lies before its beginning moves tokens up"),
           (kEmptyRangeShifts, "OK-68",
            "an empty range calls the shift function"),
           (kCallsAfterClose, "OK-69",
            "calls after close are answered as if nothing had happened"),
           (kReserveRemembered, "OK-71",
            "a reserve pass sets the position that an encoder remembers"),
           (kReserveShown, "OK-76",
            "get shows a layer that only had reserve puts"),
           (kAnySequenceDrops, "OK-75",
            "a removal from any sequence drops the result of an encoder"),
           (kBadTypeAccepted, "OK-82",
            "a bad layer type fails only when it is used"),
           (kStartHalfUnwound, "OK-83",
            "when a member is full, old tokens of the others go and evictions stay"),
           (kRemovalHalfDone, "OK-86",
            "members before the one that fails keep the removal"))
// clang-format on

}  // namespace kvo::positional
