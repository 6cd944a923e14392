// reference/generation/quirks.hpp: where profile original parts from documented.
//
// Source   the section "Profile documented" of the rules ZF-75 to ZF-112. What it says of sampling
//          (ZF-90 to ZF-96) are quirks of contract `sampling`; ZF-82 and ZF-88 have no row: calls
//          of the references share nothing but their pool.
#pragma once

#include <array>

#include "reference/contract/values/quirk.hpp"

namespace kvo::generation {

// clang-format off
KVO_QUIRKS(Quirk,
    (kPagedOptionSwallowed, "ZF-75", "a paged option whose pool cannot be made is dropped"),
    (kFp16Ignored, "ZF-75", "fp16 is ignored by caches that do not have it"),
    (kBlocksNeverReturn, "ZF-76", "the blocks of a call are lost to the pool, however it ends"),
    (kUnsetEosStops, "ZF-77", "an EOS id of 0 or less is in the stop set, too"),
    (kFullLosesText, "ZF-77", "a cache that is full in the middle fails the call"),
    (kCancelIsNoError, "ZF-78",
     "a cancelled call returns what it has, and runs the prefill all the same"),
    (kStopByListOrder, "ZF-79",
     "the first stop string of the list wins, wherever it stands, and an empty one matches"),
    (kStopHidesDecodeError, "ZF-79", "a text that cannot be decoded has no stop string"),
    (kStreamLeaks, "ZF-84",
     "a stream sends beginnings of stop strings and halves of characters, and loses text that "
     "shrank"),
    (kWrongStreamsCancel, "ZF-89", "a wrong number of streams is told as a cancellation"),
    (kNoBos, "ZF-100", "speculative decoding puts no BOS in front"),
    (kSamplingIgnored, "ZF-100", "speculative decoding ignores temperature and penalty"),
    (kFirstDraftUnverified, "ZF-104",
     "the target does not see the last token of a round, and the first draft token is accepted "
     "unseen"),
    (kDraftFailureFails, "ZF-109", "a draft model that fails, or is full, fails the call"),
    (kStopOncePerRound, "ZF-107",
     "speculative decoding looks for stop strings at the end of a round that goes on, only"),
    (kUnverifiedCounts, "ZF-112", "a draft token that nobody verified counts as accepted"))
// clang-format on

inline constexpr std::array kGeneratorQuirks{
    Quirk::kPagedOptionSwallowed, Quirk::kFp16Ignored,          Quirk::kBlocksNeverReturn,
    Quirk::kUnsetEosStops,        Quirk::kFullLosesText,        Quirk::kCancelIsNoError,
    Quirk::kStopByListOrder,      Quirk::kStopHidesDecodeError, Quirk::kStreamLeaks,
    Quirk::kWrongStreamsCancel};

inline constexpr std::array kSpeculativeQuirks{
    Quirk::kUnsetEosStops,    Quirk::kFullLosesText,        Quirk::kCancelIsNoError,
    Quirk::kStopByListOrder,  Quirk::kStopHidesDecodeError, Quirk::kNoBos,
    Quirk::kSamplingIgnored,  Quirk::kFirstDraftUnverified, Quirk::kDraftFailureFails,
    Quirk::kStopOncePerRound, Quirk::kUnverifiedCounts};

}  // namespace kvo::generation
