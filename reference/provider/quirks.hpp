// reference/provider/quirks.hpp: where profile original parts from documented.
//
// Rows stand in the order of the caches; those that several share come first. Each kind lists the
// rows that concern it.
// Source   the section "Profile documented" of the rules ZF-1 to ZF-74. Two of its lines have no
//          row. ZF-47, a counter past the end: where counter and length agree it cannot be. ZF-71,
//          the identity of freed tensors: the harness keeps them.
#pragma once

#include <array>

#include "reference/contract/values/quirk.hpp"

namespace kvo::provider {

// clang-format off
KVO_QUIRKS(Quirk,
    (kOverflowAborts, "ZF-1", "a product of sizes that overflows aborts"),
    (kNullAborts, "ZF-3", "a null K or V aborts"),
    // contiguous
    (kNegativeSizesAbort, "ZF-8",
     "a negative num_layers aborts at once, a negative max_seq_len at the first update"),
    (kFullPins, "ZF-10", "a first update that is full pins batch and dim"),
    (kContiguousVIgnored, "ZF-11", "V's shape is not looked at, and a short V aborts"),
    (kNegativeLengths, "ZF-18", "a negative truncate gives negative lengths, which abort later"),
    // paged
    (kNilPoolAborts, "ZF-27", "a null pool aborts"),
    (kNegativeLayersAbort, "ZF-27", "a negative num_layers aborts"),
    (kSurplusLayersAccepted, "ZF-34",
     "layers that the pool has not are accepted, and abort when written"),
    (kPagedVIgnored, "ZF-33", "V's shape is not looked at, and a short V aborts"),
    (kDryAppendKeepsBlocks, "ZF-30", "an append that runs dry keeps its blocks and what it wrote"),
    (kFailedAppendPins, "ZF-31", "an append that runs dry or is empty pins the layout"),
    (kCutBlockKeepsUsed, "ZF-39", "truncate leaves `used` of the block that it cuts"),
    (kTruncateExtends, "ZF-40", "truncate beyond the length takes freed blocks back, or aborts"),
    // device
    (kLastLayerAdvances, "ZF-45", "the last layer alone advances; the others are not asked"),
    (kHostAppendsUncounted, "ZF-48", "appends from the host leave the counter behind"),
    (kSyncTakesAnyLength, "ZF-48", "sync takes any counter for a length"),
    (kArraysEachTime, "ZF-50", "pointer arrays are made at each call and never freed"),
    (kResetForgetsFailure, "ZF-51",
     "a reset that cannot zero the counter leaves it apart from the length"),
    (kWorksWhenClosed, "ZF-52", "a closed cache goes on, with null pointers"),
    // tensor
    (kTensorSizesUnchecked, "ZF-53",
     "a negative num_layers aborts, a negative max_seq_len is accepted"),
    (kOneCounterAlone, "ZF-53", "with memory for one counter only that one is used alone"),
    (kLaterShapesUnchecked, "ZF-54", "batch and dim of later updates are not checked"),
    (kBatchZeroUnallocated, "ZF-55", "batch 0 leaves a layer unallocated, but counts"),
    (kFailedUpdateAllocates, "ZF-55",
     "an update that fails on the device leaves its layer allocated"),
    (kPromotionToFp32, "ZF-56", "a promotion gives fp32 storage, also in fp16 mode"),
    (kKvSeqLenCountsSteps, "ZF-57",
     "kv_seq_len counts steps, also those that fail, and takes the last layer's length"),
    (kSharedPosition, "ZF-58",
     "a decode step writes where gpu_counter says, not at the layer's length"),
    (kGpuCounterLags, "ZF-59", "a step from the host does not move gpu_counter"),
    (kCpuSourceFailsLate, "ZF-59",
     "fp16 storage looks at V's place after K is written and counted"),
    (kTensorVIgnored, "ZF-59", "a short V leaves old cells, a long one is cut or runs on"),
    (kFlatStorage, "ZF-60", "updates lie one behind the other, which scrambles a batch"),
    (kSharedScratch, "ZF-61", "an fp16 result is overwritten, or freed, by the next one"),
    (kTensorNegativeLengths, "ZF-64",
     "a negative truncate gives negative lengths, which abort later"),
    (kTruncateSetsCounters, "ZF-64", "truncate sets the counters, also to more than the lengths"),
    (kSyncFillsEmptyLayers, "ZF-65", "sync gives a length to layers that hold nothing"),
    (kSyncTakesAnyCounter, "ZF-65", "sync takes any counter for a length"),
    // context
    (kNullKvFound, "ZF-73", "a null contiguous cache counts as found"))
// clang-format on

inline constexpr std::array kContiguousQuirks{Quirk::kOverflowAborts,     Quirk::kNullAborts,
                                              Quirk::kNegativeSizesAbort, Quirk::kFullPins,
                                              Quirk::kContiguousVIgnored, Quirk::kNegativeLengths};

/// Beside these, a paged cache's pool has those of contract block_pool.
inline constexpr std::array kPagedQuirks{Quirk::kNullAborts,          Quirk::kNilPoolAborts,
                                         Quirk::kNegativeLayersAbort, Quirk::kSurplusLayersAccepted,
                                         Quirk::kPagedVIgnored,       Quirk::kDryAppendKeepsBlocks,
                                         Quirk::kFailedAppendPins,    Quirk::kCutBlockKeepsUsed,
                                         Quirk::kTruncateExtends};

inline constexpr std::array kDeviceQuirks{Quirk::kOverflowAborts,       Quirk::kLastLayerAdvances,
                                          Quirk::kHostAppendsUncounted, Quirk::kSyncTakesAnyLength,
                                          Quirk::kArraysEachTime,       Quirk::kResetForgetsFailure,
                                          Quirk::kWorksWhenClosed};

inline constexpr std::array kTensorQuirks{
    Quirk::kOverflowAborts,        Quirk::kNullAborts,           Quirk::kTensorSizesUnchecked,
    Quirk::kOneCounterAlone,       Quirk::kLaterShapesUnchecked, Quirk::kBatchZeroUnallocated,
    Quirk::kFailedUpdateAllocates, Quirk::kPromotionToFp32,      Quirk::kKvSeqLenCountsSteps,
    Quirk::kSharedPosition,        Quirk::kGpuCounterLags,       Quirk::kCpuSourceFailsLate,
    Quirk::kTensorVIgnored,        Quirk::kFlatStorage,          Quirk::kSharedScratch,
    Quirk::kTensorNegativeLengths, Quirk::kTruncateSetsCounters, Quirk::kSyncFillsEmptyLayers,
    Quirk::kSyncTakesAnyCounter};

inline constexpr std::array kContextQuirks{Quirk::kNullKvFound};

/// Of the providers that a tracer stands before: contiguous, paged, and tensor on the host.
inline constexpr std::array kTracingQuirks{
    Quirk::kOverflowAborts,       Quirk::kNullAborts,
    Quirk::kNegativeSizesAbort,   Quirk::kFullPins,
    Quirk::kContiguousVIgnored,   Quirk::kNegativeLengths,
    Quirk::kNegativeLayersAbort,  Quirk::kSurplusLayersAccepted,
    Quirk::kPagedVIgnored,        Quirk::kDryAppendKeepsBlocks,
    Quirk::kFailedAppendPins,     Quirk::kCutBlockKeepsUsed,
    Quirk::kTruncateExtends,      Quirk::kTensorSizesUnchecked,
    Quirk::kLaterShapesUnchecked, Quirk::kBatchZeroUnallocated,
    Quirk::kTensorVIgnored,       Quirk::kFlatStorage,
    Quirk::kTensorNegativeLengths};

}  // namespace kvo::provider
