// reference/events/quirks.hpp: where profile original parts from documented.
//
// Source   docs/rules/events.md: the declared weaknesses of followers (EV-95).
#pragma once

#include <array>

#include "reference/contract/values/quirk.hpp"

namespace kvo::events {

// clang-format off
KVO_QUIRKS(Quirk,
    (kOneRemovalEnds, "EV-95 W2", "one removal ends a block that has two copies"),
    (kStoresOutlive, "EV-95 W3", "a store that is repeated outlives its block"),
    (kHoleEndsEdge, "EV-95 W4", "a removed inner block forgets the rest of its edge for good"),
    (kCountIsIdentity, "EV-95 W5", "as many workers as before are taken for the same workers"),
    (kHolesUnseen, "EV-95 W6", "holes between probes are not seen"),
    (kForeignKeysUnfound, "EV-95 W7", "blocks under keys that are not its own are never found"),
    (kRestartUnseen, "EV-95 W8", "a restart in place is taken for repetitions"),
    (kLateReplayTaken, "EV-95 W9", "a replay that begins too late is taken for all of it"),
    (kNumbersUnread, "EV-95 W10", "lost, repeated and late batches go unnoticed"),
    (kExtraKeysHashed, "EV-95 W11", "adapters and salts among extra keys are taken for images"),
    (kLeaveKeepsCounts, "EV-95 W12", "a worker that comes back has its first removals swallowed"),
    (kRanksShareBlocks, "EV-95 W13", "a removal at one rank ends the block for all ranks"),
    (kRemovalsUnfiltered, "EV-95 W14", "removals in other groups and tiers end the block"),
    (kNamespacesShared, "EV-95 W15", "adapters and salts share everything"),
    (kBlocksRecut, "EV-95 W16", "events of another block size or with too few keys are cut anew"),
    (kMapsUnread, "EV-95 W17", "the maps that SGLang sends are not understood"),
    (kLimitsForget, "EV-95 W19", "entries beyond the limits of the index are forgotten"),
    (kKeyLeavesTrace, "EV-95 W20", "a key that moves is still found at its old place"),
    (kFirstNameStays, "EV-95 W21", "a block keeps the key of the first engine that named it"))
// clang-format on

/// Those of each kind. @{
inline constexpr std::array kChainQuirks{Quirk::kOneRemovalEnds, Quirk::kRanksShareBlocks};
inline constexpr std::array kRadixQuirks{Quirk::kOneRemovalEnds, Quirk::kHoleEndsEdge,
                                         Quirk::kKeyLeavesTrace, Quirk::kFirstNameStays};
inline constexpr std::array kCrtcQuirks{Quirk::kOneRemovalEnds, Quirk::kHoleEndsEdge,
                                        Quirk::kCountIsIdentity, Quirk::kKeyLeavesTrace,
                                        Quirk::kFirstNameStays};
inline constexpr std::array kPositionalQuirks{Quirk::kOneRemovalEnds, Quirk::kHolesUnseen,
                                              Quirk::kForeignKeysUnfound, Quirk::kKeyLeavesTrace};
inline constexpr std::array kDynamoQuirks{Quirk::kOneRemovalEnds, Quirk::kHoleEndsEdge,
                                          Quirk::kRestartUnseen, Quirk::kLateReplayTaken,
                                          Quirk::kFirstNameStays};
inline constexpr std::array kLlmdQuirks{
    Quirk::kStoresOutlive,    Quirk::kNumbersUnread,    Quirk::kExtraKeysHashed,
    Quirk::kLeaveKeepsCounts, Quirk::kRanksShareBlocks, Quirk::kBlocksRecut,
    Quirk::kMapsUnread,       Quirk::kLimitsForget,     Quirk::kKeyLeavesTrace};
inline constexpr std::array kInferaQuirks{Quirk::kOneRemovalEnds,   Quirk::kNumbersUnread,
                                          Quirk::kRanksShareBlocks, Quirk::kRemovalsUnfiltered,
                                          Quirk::kNamespacesShared, Quirk::kBlocksRecut,
                                          Quirk::kMapsUnread,       Quirk::kKeyLeavesTrace};
/// @}

}  // namespace kvo::events
