// reference/cells/quirks.hpp: where profile original parts from documented.
//
// Source   the section "Profile documented" of the rules LC-1 to LC-98.
#pragma once

#include <array>

#include "reference/contract/values/quirk.hpp"

namespace kvo::cells {

// clang-format off
KVO_QUIRKS(Quirk,
    (kOwnerlessCellIsKept, "LC-13", "keeping one sequence leaves a used cell that nobody owns"),
    (kExtraOutlivesPosition, "LC-15",
     "a cell whose position falls below 0 keeps its extra data, which its next token shows"),
    (kDivisionTurnsBack, "LC-16",
     "a division adds old - new to the shift, so that keys are turned away from their positions"),
    (kEmptyIsMinusOne, "LC-20", "an empty cell is in a range around position -1"),
    (kCopyCountsNothing, "LC-21", "a copy of cells says that none of them is used"),
    (kShiftedCellsAreCopied, "LC-23",
     "in a release build cells with a pending shift are copied and pasted over, and it is lost"),
    (kOwnerAddedTwice, "LC-24", "in a release build adding an owner again is no error"),
    (kNegativePosition, "LC-80",
     "in a release build a token at position -1 takes a cell that is used and counts as empty"),
    (kRepeatedPositions, "LC-31", "a batch may have a position of a sequence twice"),
    (kOverlappingSets, "LC-31",
     "tokens may be of sets of sequences that overlap and do not contain each other"),
    (kUbatchTooLarge, "LC-33", "an ubatch takes one sequence more than it has room for tokens"),
    (kHeadsOfOtherStreams, "LC-37",
     "undoing a rehearsal gives a stream the place in the search that another one had"),
    (kRehearsalPurges, "LC-63",
     "what a rehearsal purges is gone, if the batch is refused, too, and before earlier ubatches"),
    (kLastIsPrimary, "LC-38", "a token of several sequences sees what the one listed last has"),
    (kOnlyMinusOneIsAny, "LC-40",
     "removing from a sequence below -1 aborts instead of meaning any"),
    (kCopyBeyondMost, "LC-41", "a sequence that no batch may name gets cells by a copy"),
    (kKeepsOtherStreams, "LC-42", "keeping one sequence leaves those of the other streams"),
    (kDivisorUnchecked, "LC-44", "a divisor below 1 is no error where no cell is in the range"),
    (kOthersMoveAlong, "LC-43", "a cell that is shared moves for all its owners"),
    (kUnequalHalvesMove, "LC-68", "a pair that says it cannot shift moves positions all the same"),
    (kAbortedStays, "LC-57",
     "an ubatch that was interrupted stays with the owners of its tokens that are not primary"),
    (kCopyIgnoresRange, "LC-66",
     "a copy between streams takes all of a sequence for ranges that leave out some of it"),
    (kCopyIsLate, "LC-66",
     "rows follow a copy between streams at the next update, over what was loaded since"),
    (kSavedBeforeUpdate, "LC-71",
     "a state is saved with rows from before pending shifts and copies"),
    (kEmptyStateChangesNothing, "LC-73",
     "loading a state without cells leaves the sequence as it is"),
    (kFailedLoadRemoves, "LC-74", "a load that fails has removed the sequence"),
    (kHalfLoaded, "LC-76",
     "a load that fails in the window half leaves cells with old rows in the other one"),
    (kCopyIsAhead, "LC-92", "the copy of a state that went back goes on from the newer one"),
    (kOthersStayAhead, "LC-96",
     "going back in a shared state leaves its other owners at the newer one"),
    (kBeyondMostIsFalse, "LC-95", "removing from a sequence that cannot be is refused, no error"),
    (kAnyIsNeverRemoved, "LC-95", "removing from any sequence never removes anything"),
    (kOlderStayUnsaid, "LC-95", "removing only older tokens of a state succeeds, and they stay"),
    (kSharedStateMoves, "LC-98",
     "moving the position of a shared state moves it for all its owners"),
    (kStateBelowZero, "LC-98",
     "a state whose position falls below 0 stays, and can no longer be removed"))
// clang-format on

/// Those of each kind. @{
inline constexpr std::array kMetaQuirks{Quirk::kOwnerlessCellIsKept, Quirk::kExtraOutlivesPosition,
                                        Quirk::kDivisionTurnsBack,   Quirk::kEmptyIsMinusOne,
                                        Quirk::kCopyCountsNothing,   Quirk::kShiftedCellsAreCopied,
                                        Quirk::kOwnerAddedTwice};
inline constexpr std::array kKvQuirks{
    Quirk::kDivisionTurnsBack, Quirk::kNegativePosition,  Quirk::kRepeatedPositions,
    Quirk::kOverlappingSets,   Quirk::kUbatchTooLarge,    Quirk::kHeadsOfOtherStreams,
    Quirk::kRehearsalPurges,   Quirk::kLastIsPrimary,     Quirk::kOnlyMinusOneIsAny,
    Quirk::kCopyBeyondMost,    Quirk::kKeepsOtherStreams, Quirk::kDivisorUnchecked,
    Quirk::kOthersMoveAlong,   Quirk::kAbortedStays,      Quirk::kCopyIgnoresRange,
    Quirk::kCopyIsLate,        Quirk::kSavedBeforeUpdate, Quirk::kEmptyStateChangesNothing,
    Quirk::kFailedLoadRemoves};
inline constexpr std::array kIswaQuirks{
    Quirk::kDivisionTurnsBack, Quirk::kNegativePosition,  Quirk::kRepeatedPositions,
    Quirk::kOverlappingSets,   Quirk::kUbatchTooLarge,    Quirk::kHeadsOfOtherStreams,
    Quirk::kRehearsalPurges,   Quirk::kLastIsPrimary,     Quirk::kOnlyMinusOneIsAny,
    Quirk::kCopyBeyondMost,    Quirk::kKeepsOtherStreams, Quirk::kDivisorUnchecked,
    Quirk::kOthersMoveAlong,   Quirk::kUnequalHalvesMove, Quirk::kCopyIgnoresRange,
    Quirk::kCopyIsLate,        Quirk::kSavedBeforeUpdate, Quirk::kEmptyStateChangesNothing,
    Quirk::kFailedLoadRemoves, Quirk::kHalfLoaded};
inline constexpr std::array kRecurrentQuirks{
    Quirk::kNegativePosition, Quirk::kRepeatedPositions, Quirk::kOverlappingSets,
    Quirk::kUbatchTooLarge,   Quirk::kDivisorUnchecked,  Quirk::kCopyIsAhead,
    Quirk::kOthersStayAhead,  Quirk::kBeyondMostIsFalse, Quirk::kAnyIsNeverRemoved,
    Quirk::kOlderStayUnsaid,  Quirk::kSharedStateMoves,  Quirk::kStateBelowZero};
/// @}

}  // namespace kvo::cells
