// reference/positional/operations.hpp: the operations of contract `positional`, described.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/positional/cache.hpp"
#include "reference/positional/shift.hpp"

namespace kvo::positional {

KVO_DESCRIBE(BackendConfig, (cache_padding, "cells that a visible range is rounded to; 0 is 1"),
             (permuted_v, "whether V is shown as [kv_head][head_dim][cell]"),
             (mask_dtype, "element type of masks"))

/// The config of one cache, and of a wrapper's members. Absent numbers are 0.
KVO_RECORD(CacheConfig,
           (std::optional<MemberKind>, cache,
            "which cache a wrapper's member is; absent elsewhere"),
           (std::optional<std::int32_t>, window, "positions before a token that it sees"),
           (std::optional<std::int32_t>, memory,
            "positions before the newest that are kept; absent: the window"),
           (std::optional<std::int32_t>, chunk, "positions of a chunk"),
           (std::optional<Nullable<ShiftConfig>>, shift,
            "the shift function; null or absent: none"),
           (std::optional<BackendConfig>, backend, "what the backend asks for; absent in members"))

/// The config of a wrapper.
KVO_RECORD(WrapperConfig, (std::vector<CacheConfig>, caches, "the members, in order"),
           (std::optional<BackendConfig>, backend, "what the backend asks for, of all of them"))

/// The cache that a kind other than the wrapper is; nothing for the wrapper.
[[nodiscard]] std::optional<MemberKind> member_kind_of(const CacheKind& kind);

/// The members of a case of any kind, a single cache as the only one, each with its kind.
[[nodiscard]] std::vector<CacheConfig> members_of(const CacheKind& kind, const Setup& setup);
/// What the backend of a case asks for.
[[nodiscard]] BackendConfig backend_of(const CacheKind& kind, const Setup& setup);
/// A member as its constructor gets it.
[[nodiscard]] MemberOptions member_options(const CacheConfig& config);

using LayerNumber = LayerOfModel<std::int64_t>;
struct SequenceNumber {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.meaning = "sequence, by number"};
};

inline constexpr std::array<std::string_view, 3> kRowAxes{"cell", "kv_head", "head_dim"};
inline constexpr std::array<std::string_view, 2> kMaskAxes{"token", "cell"};

KVO_OPERATION(SetConfig, set_config, "Replaces the backend's config, before init (OK-8).", Nothing,
              (std::int64_t, cache_padding, "cells that a visible range is rounded to; 0 is 1"),
              (bool, permuted_v, "whether V is shown as [kv_head][head_dim][cell]"),
              (MaskType, mask_dtype, "element type of masks", MaskType::kUnset),
              (std::optional<std::int64_t>, target,
               "member of a wrapper that it is for; absent: all of them"))
KVO_OPERATION(Init, init, "Sizes the pool of cells (OK-10 to OK-15).", Nothing,
              (std::int64_t, max_sequences, "sequences at once at most"),
              (std::int64_t, capacity, "positions that a sequence may hold, in tokens"),
              (std::int64_t, max_batch, "tokens of a batch at most"),
              (StorageType, dtype, "storage type: f32, f16, bf16, f8_e4m3, f8_e5m2, q8, q4",
               StorageType::kF32),
              (std::optional<std::int64_t>, group,
               "of q8 and q4: elements that share a scale, 32, 64 or 128; absent: 32"),
              (std::optional<bool>, offset,
               "of q8 and q4: whether a group has an offset, too; absent: false"))

/// What it says of the storage of rows.
[[nodiscard]] inline StorageFormat storage_of(const Init& init) {
  return storage_format(init.dtype, init.group, init.offset);
}

KVO_OPERATION(StartForward, start_forward, "Finds cells for a batch, builds its mask (OK-16).",
              Nothing,
              (std::vector<std::int32_t>, positions, "position of each token of the batch"),
              (std::vector<std::int64_t>, seqs, "sequence of each token of the batch"),
              (bool, reserve, "whether the pass only reserves memory"),
              (std::optional<std::vector<std::int64_t>>, multimodal,
               "batch rows that carry an image"))
KVO_OPERATION(SetLayer, set_layer, "Chooses the layer of put and get (OK-42).", Nothing,
              (LayerNumber, layer))
KVO_OPERATION(SetLayerType, set_layer_type, "Chooses the member for put and get (OK-82).", Nothing,
              (std::int64_t, type, "kind of the layer, by number"))
KVO_RECORD(UnderlyingCacheReturns,
           (std::int64_t, index, "flat index of an element, or number of a member"))
KVO_OPERATION(UnderlyingCache, underlying_cache, "The number of the member chosen (OK-81).",
              UnderlyingCacheReturns)
KVO_OPERATION_WITH((static constexpr std::array<std::string_view, 3> kAxes{"token", "kv_head",
                                                                           "head_dim"};),
                   Put, put, "Stores the rows of the batch in a layer (OK-44).", Nothing,
                   (Tensor, k, "keys"), (Tensor, v, "values"))
KVO_RECORD_WITH(
    (  /// v has those of k, or with permuted_v an order of its own, and so no names.
        static constexpr AxisNames axes(std::string_view member) {
          if (member == "k") return kRowAxes;
          return member == "mask" ? AxisNames(kMaskAxes) : AxisNames();
        }),
    GetReturns, (Nullable<Tensor>, k, "keys"), (Nullable<Tensor>, v, "values"),
    (Nullable<Tensor>, mask,
     "what each query row may see: additive or boolean; null or a word for implied masks"))
KVO_OPERATION(Get, get, "Rows of the visible range, and the mask (OK-47).", GetReturns)
KVO_OPERATION(SetCausal, set_causal, "Lets rows of the batch see ahead (OK-38 to OK-41).", Nothing,
              (std::vector<std::int64_t>, except, "batch rows that are not masked causally"),
              (std::optional<bool>, ctx,
               "whether there is a context to build the mask in; absent: true"))
KVO_OPERATION(CopyPrefix, copy_prefix, "Shares the first positions of a sequence (OK-51).", Nothing,
              (std::int64_t, src, "sequence that is copied"),
              (std::int64_t, dst, "sequence that is written"),
              (std::int32_t, len, "length in tokens"))
KVO_RECORD(CanResumeReturns, (bool, value, "whether the sequence may go on there"))
KVO_OPERATION(CanResume, can_resume, "Whether a sequence may go on there (OK-55).",
              CanResumeReturns, (SequenceNumber, seq), (std::int32_t, pos, "position, from 0"))

/// One call of the shift function, as the harness observed it.
KVO_RECORD(ShiftCall,
           (std::optional<std::int64_t>, cache, "member, in a wrapper; absent elsewhere"),
           (LayerNumber, layer),
           (std::vector<std::int32_t>, offsets, "positions seen so far, by cache"),
           (std::vector<std::int64_t>, k_shape, "of the keys: cells, kv_heads, k_head_dim"))
KVO_RECORD(RemoveReturns, (std::optional<std::vector<ShiftCall>>, shift_calls,
                           "calls of the shift function, in order; absent: none"))
KVO_OPERATION(Remove, remove, "Takes positions out of a sequence, moves later ones (OK-60).",
              RemoveReturns, (SequenceNumber, seq),
              (std::int32_t, begin, "first position of the range"),
              (std::int32_t, end, "position after the last one of the range"))
KVO_RECORD(EncoderCachedReturns, (bool, value, "whether a result is held"))
KVO_OPERATION(EncoderCached, encoder_cached, "Whether an encoder holds a result (OK-73).",
              EncoderCachedReturns)
KVO_OPERATION(Close, close, "Releases layer contexts (OK-69).", Nothing)

#define KVO_POSITIONAL_OPERATIONS                                                               \
  positional::SetConfig, positional::Init, positional::StartForward, positional::SetLayer,      \
      positional::SetLayerType, positional::UnderlyingCache, positional::Put, positional::Get,  \
      positional::SetCausal, positional::CopyPrefix, positional::CanResume, positional::Remove, \
      positional::EncoderCached, positional::Close
using Ops = boost::mp11::mp_list<KVO_POSITIONAL_OPERATIONS>;

/// What a session has made. Random scripts look at that of a reference.
struct CacheOfCase {
  std::unique_ptr<Cache> cache;
};

/// The six cache kinds: `positional.causal`, ..., `positional.wrapper`.
[[nodiscard]] const CacheKind& kind_of(MemberKind member_kind);
[[nodiscard]] const CacheKind& wrapper_kind();

/// How the reference of a kind makes its caches: CausalCache, EncoderCache or WrapperCache.
[[nodiscard]] MakeCache reference_of(const CacheKind& kind);

/// A subject whose caches come from `make`. Its sessions read window, memory, chunk, shift, caches
/// and backend from the config of the case.
/// Shift   {"kind":"add","scale":s}: row + s * offset in f32. {"kind":"rope","base":b}: rotary
///         embedding over the halves of a head. {"kind":"fail","message":m}: every call is that
///         error. null: none.
[[nodiscard]] Subject make_subject(const CacheKind& kind, std::string variant, std::string doc,
                                   MakeCache make);

}  // namespace kvo::positional

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_POSITIONAL_OPERATIONS)
}  // namespace kvo
