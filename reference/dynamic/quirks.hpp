// reference/dynamic/quirks.hpp: where profile original parts from documented.
//
// Source   docs/rules/dynamic.md, which names the docstring of each promise.
#pragma once

#include "reference/contract/values/quirk.hpp"

namespace kvo::dynamic {

// clang-format off
KVO_QUIRKS(Quirk,
           (kUnboundedIgnored, "HF-4",
            "the maximum of all layers is the window although other layers have no maximum"),
           (kNoMaximumOfNothing, "HF-4",
            "the maximum of a cache without layers is an error"),
           (kAlwaysCroppable, "HF-5",
            "layers that refuse a crop, or break by it, count as croppable"),
           (kBatchSizeStale, "HF-5",
            "the batch size is that of a static layer's first update, and -1 for other layers"),
           (kRefusedUpdateChanges, "HF-10",
            "a refused update leaves keys, buffers or the length changed"),
           (kCropNeedsData, "HF-13",
            "a crop of a layer without data is an error"),
           (kEmptySkipsBatch, "HF-17",
            "a layer without tokens skips changes of the batch and then refuses the new batch"),
           (kWindowOneKeepsAll, "HF-20",
            "a window of 1 evicts nothing"),
           (kEmptyCropRefused, "HF-23",
            "a crop of 0 tokens is refused where the past is not recorded"),
           (kLostPastUnnoticed, "HF-23",
            "a crop to tokens that are evicted leaves a window with too few of them"),
           (kNegativeLength, "HF-23",
            "a crop of more tokens than a window layer counted makes the length negative"),
           (kLengthIsLive, "HF-32",
            "a length that a static layer returned changes with the layer"),
           (kRowsBroadcast, "HF-37",
            "a window buffer takes one row for every row of the batch"),
           (kSlidesShort, "HF-39",
            "a window layer with less space than its window evicts tokens of the window"),
           (kLayersTorn, "HF-50",
            "a refused crop, reorder or change of the batch leaves earlier layers changed"),
           (kRecurrentStays, "HF-53",
            "a crop takes the recurrent state for what it was before"),
           (kStaticHybridHalfCropped, "HF-54",
            "a crop of a static hybrid cuts its convolution state only"),
           (kBadBeamsRemembered, "HF-62",
            "a quantized layer remembers beams that are out of range"),
           (kHalfCropped, "HF-63",
            "a crop of a quantized layer cuts its residual part only and not its length"),
           (kHalfBatched, "HF-63",
            "a change of the batch of a quantized layer changes its residual part only"),
           (kPairLacksMethods, "HF-65",
            "a pair of caches has neither properties nor early initialization"))
// clang-format on

}  // namespace kvo::dynamic
