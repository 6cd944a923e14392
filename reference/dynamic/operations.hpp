// reference/dynamic/operations.hpp: the operations of contract `dynamic`.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/dynamic/cache.hpp"

namespace kvo::dynamic {

inline constexpr std::array<std::string_view, 4> kTokenAxes{"batch", "head", "token", "dim"};
inline constexpr std::array<std::string_view, 3> kStateAxes{"batch", "channel", "token"};

using LayerNumber = LayerOfModel<std::int64_t>;
using PairNumber = HandleOf<"pair">;
using LengthNumber = HandleOf<"length">;
/// Numbers that a session passes on: sizes, and those that may be negative. @{
inline constexpr std::int64_t kMostCount = std::int64_t{1} << 31U;
struct Size {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.least = 0, .most = kMostCount};
};
struct Signed {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.least = -kMostCount, .most = kMostCount};
};
/// @}

KVO_RECORD_WITH((static constexpr auto kAxes = kTokenAxes;), UpdateReturns,
                (Nullable<Tensor>, k, "keys that attention sees; null: none were given"),
                (Nullable<Tensor>, v, "values that attention sees"),
                (Maybe<PairNumber>, handle, "number of the returned pair, to read it again"))
KVO_OPERATION_WITH(
    (static constexpr auto kAxes = kTokenAxes;
     static constexpr std::pair<std::string_view, std::string_view> kToldBy{"keep", "handle"};),
    Update, update, "Adds tokens and returns what attention sees (HF-10, HF-20, HF-30, HF-37).",
    UpdateReturns, (std::optional<Side>, side, "which cache of a pair; absent elsewhere"),
    (LayerNumber, layer), (Nullable<Tensor>, k, "keys; null: none"),
    (Nullable<Tensor>, v, "values; null: none"),
    (std::optional<bool>, keep,
     "whether the returned pair gets a number; absent in a log: if its ret has one"))
KVO_RECORD(SeqLength, (std::int64_t, seq_length, "tokens"))
KVO_OPERATION(GetSeqLength, get_seq_length, "The length of a layer (HF-4, HF-12, HF-22, HF-32).",
              SeqLength, (LayerNumber, layer))
KVO_RECORD(GetMaskSizesReturns, (std::int64_t, kv_length, "tokens that the mask is about"),
           (std::int64_t, kv_offset, "position of the first of them"))
KVO_OPERATION(GetMaskSizes, get_mask_sizes,
              "Sizes of the mask for new tokens (HF-12, HF-22, HF-33, HF-38).", GetMaskSizesReturns,
              (Size, query_length, "tokens of the next update", 1), (LayerNumber, layer))
KVO_RECORD(GetMaxLengthReturns, (std::int64_t, max_length, "tokens; -1: no maximum"))
KVO_OPERATION(GetMaxLength, get_max_length, "Most tokens of a layer, or of all layers (HF-4).",
              GetMaxLengthReturns, (OrNull<LayerNumber>, layer, "layer; null: all of them"))
KVO_RECORD_WITH((static constexpr auto kAxes = kTokenAxes;), ShowStateReturns,
                (bool, initialized, "whether the layer has tensors"),
                (Nullable<Tensor>, k, "stored keys; null: none"),
                (Nullable<Tensor>, v, "stored values; null: none"))
KVO_OPERATION(ShowState, state, "What a layer stores (HF-13, HF-20, HF-30, HF-61).",
              ShowStateReturns,
              (std::optional<Side>, side, "which cache of a pair; absent elsewhere"),
              (LayerNumber, layer))
KVO_RECORD(NumLayersReturns, (std::int64_t, num_layers, "layers"))
KVO_OPERATION(NumLayers, num_layers, "The number of layers so far (HF-4).", NumLayersReturns)
// Releases before 5.18 have no `is_croppable`.
KVO_RECORD_WITH(
    (static constexpr std::array<std::string_view, 1> kComparedIfShown{"is_croppable"};),
    PropsReturns, (std::vector<Flag>, is_sliding, "of each layer"),
    (std::optional<bool>, is_croppable, "whether all layers are"),
    (bool, is_compileable, "whether all layers are, and there is one"),
    (bool, is_initialized, "whether all layers with keys and values are, and there is one"),
    (std::int64_t, batch_size, "rows of the batch; -1: none is known"))
KVO_OPERATION(Props, props, "Properties of the cache (HF-5).", PropsReturns)
KVO_RECORD_WITH((static constexpr auto kAxes = kTokenAxes;), RereadReturns,
                (Nullable<Tensor>, k, "keys as they show now"),
                (Nullable<Tensor>, v, "values as they show now"))
KVO_OPERATION(Reread, reread, "Looks at a returned pair again (HF-11, HF-31, HF-41).",
              RereadReturns, (PairNumber, handle, "number of the pair"))
KVO_RECORD(HoldSeqLengthReturns, (std::int64_t, seq_length, "tokens"),
           (LengthNumber, handle, "number of the length, to read it again"))
KVO_OPERATION(HoldSeqLength, hold_seq_length, "The length of a layer, which is held (HF-32).",
              HoldSeqLengthReturns, (LayerNumber, layer))
KVO_OPERATION(RereadSeqLength, reread_seq_length, "Looks at a held length again (HF-32).",
              SeqLength, (LengthNumber, handle, "number of the length"))
KVO_OPERATION(Crop, crop, "Removes the last tokens of every layer (HF-13, HF-23, HF-53, HF-63).",
              Nothing, (Signed, tokens_to_remove, "their number, as a negative one"))
KVO_OPERATION(ReorderCache, reorder_cache,
              "Makes other rows the batch, for a beam search (HF-14, HF-35, HF-62).", Nothing,
              (std::vector<std::int64_t>, beam_idx, "rows of the batch, in their new order"))
KVO_OPERATION(BatchRepeatInterleave, batch_repeat_interleave,
              "Makes several rows of each row of the batch (HF-15).", Nothing,
              (Signed, repeats, "how many"))
KVO_OPERATION(BatchSelectIndices, batch_select_indices, "Makes some rows the batch (HF-16).",
              Nothing,
              (std::vector<std::int64_t>, indices, "rows; negative ones count from the end"))
KVO_OPERATION(Reset, reset, "Drops or zeroes all data (HF-18, HF-26, HF-35, HF-52).", Nothing)
KVO_OPERATION(ActivatePastRecording, activate_past_recording,
              "Keeps what would be evicted, until a crop (HF-26, HF-52).", Nothing)
KVO_OPERATION(EarlyInitialization, early_initialization,
              "Allocates for every layer that has no data (HF-36).", Nothing,
              (Size, batch_size, "rows of the batch", 1), (Size, num_heads, "heads", 1),
              (Size, head_dim, "elements of a head", 1))
KVO_OPERATION(LayerOffload, layer_offload, "Moves a layer to host memory (HF-70).", Nothing,
              (LayerNumber, layer))
KVO_OPERATION(LayerPrefetch, layer_prefetch, "Moves a layer back to its device (HF-70).", Nothing,
              (LayerNumber, layer))
KVO_RECORD_WITH((static constexpr auto kAxes = kStateAxes;), StateReturns,
                (Nullable<Tensor>, state, "the state; null: none yet"))
KVO_OPERATION_WITH((static constexpr auto kAxes = kStateAxes;), UpdateConvState, update_conv_state,
                   "Adds to a convolution state, and returns both (HF-52).", StateReturns,
                   (LayerNumber, layer), (Tensor, state, "what is added"),
                   (std::optional<std::int64_t>, conv_kernel_size,
                    "tokens that stay; absent: those of the first update"))
KVO_OPERATION(GetConvState, get_conv_state, "The convolution state of a layer (HF-52).",
              StateReturns, (LayerNumber, layer))
KVO_OPERATION_WITH((static constexpr auto kAxes = kStateAxes;), UpdateRecurrentState,
                   update_recurrent_state, "Replaces a recurrent state (HF-52).", StateReturns,
                   (LayerNumber, layer), (Tensor, state, "the new one"))
KVO_OPERATION(GetRecurrentState, get_recurrent_state, "The recurrent state of a layer (HF-52).",
              StateReturns, (LayerNumber, layer))
KVO_RECORD(HasPreviousStateReturns, (bool, has_previous_state, "whether it was updated"))
KVO_OPERATION(HasPreviousState, has_previous_state,
              "Whether a layer has a convolution state (HF-52).", HasPreviousStateReturns,
              (OrNull<LayerNumber>, layer, "layer; null: the last linear one"))
KVO_RECORD(IsUpdatedReturns, (std::vector<Flag>, is_updated,
                              "of each cross layer that there was when the pair was made"))
KVO_OPERATION(IsUpdated, is_updated, "Flags of a pair's cross layers (HF-65).", IsUpdatedReturns)

enum class Member : std::uint8_t { kDynamic, kStatic };
BOOST_DESCRIBE_ENUM(Member, kDynamic, kStatic)

/// The config of a case.
KVO_RECORD(Config, (std::optional<std::string>, class_, "name of the class; not used"),
           (Nullable<std::vector<LayerType>>, layer_types,
            "layer by layer; null: all alike, or none yet (HF-2, HF-3)", std::nullopt,
            may_be_absent),
           (Nullable<std::int64_t>, sliding_window, "tokens of a window", std::nullopt,
            may_be_absent),
           (Nullable<std::int64_t>, max_cache_len, "tokens of a static layer", std::nullopt,
            may_be_absent),
           (Nullable<std::int64_t>, attention_chunk_size, "window of a chunked layer", std::nullopt,
            may_be_absent),
           (std::optional<std::int64_t>, num_layers, "layers, where no types are given"),
           (std::optional<std::int64_t>, num_kv_shared_layers,
            "layers at the end that reuse keys of others, and store none (HF-3)"),
           (std::optional<std::int64_t>, residual_length,
            "tokens of a quantized layer before they are quantized; absent: 128"),
           (std::optional<Member>, self, "of a pair: the decoder's cache; absent: dynamic"),
           (std::optional<Member>, cross, "of a pair: the other cache; absent: dynamic"))

#define KVO_DYNAMIC_OPERATIONS                                                                \
  dynamic::Update, dynamic::GetSeqLength, dynamic::GetMaskSizes, dynamic::GetMaxLength,       \
      dynamic::ShowState, dynamic::NumLayers, dynamic::Props, dynamic::Reread,                \
      dynamic::HoldSeqLength, dynamic::RereadSeqLength, dynamic::Crop, dynamic::ReorderCache, \
      dynamic::BatchRepeatInterleave, dynamic::BatchSelectIndices, dynamic::Reset,            \
      dynamic::ActivatePastRecording, dynamic::EarlyInitialization, dynamic::LayerOffload,    \
      dynamic::LayerPrefetch, dynamic::UpdateConvState, dynamic::GetConvState,                \
      dynamic::UpdateRecurrentState, dynamic::GetRecurrentState, dynamic::HasPreviousState,   \
      dynamic::IsUpdated
using Ops = boost::mp11::mp_list<KVO_DYNAMIC_OPERATIONS>;

/// The five cache kinds.
enum class Form : std::uint8_t {
  kDynamic,
  kStatic,
  kQuantizedIdentity,
  kQuantizedFp8,
  kEncoderDecoder
};
inline constexpr std::array kForms{Form::kDynamic, Form::kStatic, Form::kQuantizedIdentity,
                                   Form::kQuantizedFp8, Form::kEncoderDecoder};
[[nodiscard]] const CacheKind& kind_of(Form form);
/// Requires  a kind of this contract.
[[nodiscard]] Form form_of(const CacheKind& kind);

/// The options that a config asks for.
/// Errors  kNotSupported: a size is missing, below 1 or too large, or a quantized cache has layers
///         without full attention (HF-60).
[[nodiscard]] Result<CacheOptions> options_of(Form form, const Config& config,
                                              QuirkSet<Quirk> quirks);

/// What a session has made. Random scripts look at that of a reference.
struct CacheOfCase {
  std::unique_ptr<Cache> cache;
  CacheOptions options;
  std::vector<KeysValues> pairs;                             ///< those that got a number
  std::vector<std::shared_ptr<const std::int64_t>> lengths;  ///< as held
};

/// A subject whose caches come from `make`.
[[nodiscard]] Subject make_subject(const CacheKind& kind, std::string variant, std::string doc,
                                   MakeCache make);

}  // namespace kvo::dynamic

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_DYNAMIC_OPERATIONS)
}  // namespace kvo
