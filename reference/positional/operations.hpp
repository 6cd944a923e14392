// reference/positional/operations.hpp: the operations of contract `positional`, described.
#pragma once

#include <array>
#include <cstdint>
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
struct CacheConfig {
  std::optional<MemberKind> cache = std::nullopt;
  std::optional<std::int32_t> window = std::nullopt;
  std::optional<std::int32_t> memory = std::nullopt;
  std::optional<std::int32_t> chunk = std::nullopt;
  std::optional<Nullable<ShiftConfig>> shift = std::nullopt;
  std::optional<BackendConfig> backend = std::nullopt;
};
KVO_DESCRIBE(CacheConfig, (cache, "which cache a wrapper's member is; absent elsewhere"),
             (window, "positions before a token that it sees"),
             (memory, "positions before the newest that are kept; absent: the window"),
             (chunk, "positions of a chunk"), (shift, "the shift function; null or absent: none"),
             (backend, "what the backend asks for; absent in members"))

/// The config of a wrapper.
struct WrapperConfig {
  std::vector<CacheConfig> caches;
  std::optional<BackendConfig> backend = std::nullopt;
};
KVO_DESCRIBE(WrapperConfig, (caches, "the members, in order"),
             (backend, "what the backend asks for, of all of them"))

/// The cache that a kind other than the wrapper is; nothing for the wrapper.
[[nodiscard]] std::optional<MemberKind> member_kind_of(const CacheKind& kind);

/// The members of a case of any kind, a single cache as the only one, each with its kind.
[[nodiscard]] std::vector<CacheConfig> members_of(const CacheKind& kind, const Setup& setup);
/// What the backend of a case asks for.
[[nodiscard]] BackendConfig backend_of(const CacheKind& kind, const Setup& setup);
/// A member as its constructor gets it.
[[nodiscard]] MemberOptions member_options(const CacheConfig& config);

inline constexpr std::array<std::string_view, 3> kRowAxes{"cell", "kv_head", "head_dim"};
inline constexpr std::array<std::string_view, 2> kMaskAxes{"token", "cell"};

struct SetConfig {
  static constexpr std::string_view kName = "set_config";
  static constexpr std::string_view kDoc = "Replaces the backend's config, before init (OK-8).";
  using Returns = Nothing;
  std::int64_t cache_padding = 0;
  bool permuted_v = false;
  MaskType mask_dtype = MaskType::kUnset;
  std::optional<std::int64_t> target = std::nullopt;
};
KVO_DESCRIBE(SetConfig, (cache_padding, "cells that a visible range is rounded to; 0 is 1"),
             (permuted_v, "whether V is shown as [kv_head][head_dim][cell]"),
             (mask_dtype, "element type of masks"),
             (target, "member of a wrapper that it is for; absent: all of them"))

struct Init {
  static constexpr std::string_view kName = "init";
  static constexpr std::string_view kDoc = "Sizes the pool of cells (OK-10 to OK-15).";
  using Returns = Nothing;
  std::int64_t max_sequences = 0;
  std::int64_t capacity = 0;
  std::int64_t max_batch = 0;
  StorageType dtype = StorageType::kF32;
  std::optional<std::int64_t> group = std::nullopt;
  std::optional<bool> offset = std::nullopt;
};
KVO_DESCRIBE(Init, (max_sequences, "sequences at once at most"),
             (capacity, "positions that a sequence may hold, in tokens"),
             (max_batch, "tokens of a batch at most"),
             (dtype, "storage type: f32, f16, bf16, f8_e4m3, f8_e5m2, q8, q4"),
             (group, "of q8 and q4: elements that share a scale, 32, 64 or 128; absent: 32"),
             (offset, "of q8 and q4: whether a group has an offset, too; absent: false"))

/// What it says of the storage of rows.
[[nodiscard]] inline StorageFormat storage_of(const Init& init) {
  return storage_format(init.dtype, init.group, init.offset);
}

struct StartForward {
  static constexpr std::string_view kName = "start_forward";
  static constexpr std::string_view kDoc = "Finds cells for a batch, builds its mask (OK-16).";
  using Returns = Nothing;
  std::vector<std::int32_t> positions = {};
  std::vector<std::int64_t> seqs = {};
  bool reserve = false;
  std::optional<std::vector<std::int64_t>> multimodal = std::nullopt;
};
KVO_DESCRIBE(StartForward, (positions, "position of each token of the batch"),
             (seqs, "sequence of each token of the batch"),
             (reserve, "whether the pass only reserves memory"),
             (multimodal, "batch rows that carry an image"))

struct SetLayer {
  static constexpr std::string_view kName = "set_layer";
  static constexpr std::string_view kDoc = "Chooses the layer of put and get (OK-42).";
  using Returns = Nothing;
  std::int64_t layer = 0;
};
KVO_DESCRIBE(SetLayer, (layer, "layer, counted from 0"))

struct SetLayerType {
  static constexpr std::string_view kName = "set_layer_type";
  static constexpr std::string_view kDoc = "Chooses the member for put and get (OK-82).";
  using Returns = Nothing;
  std::int64_t type = 0;
};
KVO_DESCRIBE(SetLayerType, (type, "kind of the layer, by number"))

struct UnderlyingCache {
  static constexpr std::string_view kName = "underlying_cache";
  static constexpr std::string_view kDoc = "The number of the member chosen (OK-81).";
  struct Returns {
    std::int64_t index = 0;
  };
};
KVO_DESCRIBE(UnderlyingCache)
KVO_DESCRIBE(UnderlyingCache::Returns, (index, "flat index of an element, or number of a member"))

struct Put {  // NOLINT(bugprone-exception-escape): as Tensor
  static constexpr std::string_view kName = "put";
  static constexpr std::string_view kDoc = "Stores the rows of the batch in a layer (OK-44).";
  static constexpr std::array<std::string_view, 3> kAxes{"token", "kv_head", "head_dim"};
  using Returns = Nothing;
  Tensor k;
  Tensor v;
};
KVO_DESCRIBE(Put, (k, "keys"), (v, "values"))

struct Get {
  static constexpr std::string_view kName = "get";
  static constexpr std::string_view kDoc = "Rows of the visible range, and the mask (OK-47).";
  struct Returns {
    /// v has those of k, or with permuted_v an order of its own, and so no names.
    static constexpr AxisNames axes(std::string_view member) {
      if (member == "k") return kRowAxes;
      return member == "mask" ? AxisNames(kMaskAxes) : AxisNames();
    }
    Nullable<Tensor> k;
    Nullable<Tensor> v;
    Nullable<Tensor> mask;
  };
};
KVO_DESCRIBE(Get)
KVO_DESCRIBE(Get::Returns, (k, "keys"), (v, "values"),
             (mask,
              "what each query row may see: additive or boolean; null or a word for implied masks"))

struct SetCausal {
  static constexpr std::string_view kName = "set_causal";
  static constexpr std::string_view kDoc = "Lets rows of the batch see ahead (OK-38 to OK-41).";
  using Returns = Nothing;
  std::vector<std::int64_t> except;
  std::optional<bool> ctx = std::nullopt;  ///< absent: with a context
};
KVO_DESCRIBE(SetCausal, (except, "batch rows that are not masked causally"),
             (ctx, "whether there is a context to build the mask in; absent: true"))

struct CopyPrefix {
  static constexpr std::string_view kName = "copy_prefix";
  static constexpr std::string_view kDoc = "Shares the first positions of a sequence (OK-51).";
  using Returns = Nothing;
  std::int64_t src = 0;
  std::int64_t dst = 0;
  std::int32_t len = 0;
};
KVO_DESCRIBE(CopyPrefix, (src, "sequence that is copied"), (dst, "sequence that is written"),
             (len, "length in tokens"))

struct CanResume {
  static constexpr std::string_view kName = "can_resume";
  static constexpr std::string_view kDoc = "Whether a sequence may go on there (OK-55).";
  struct Returns {
    bool value = false;
  };
  std::int64_t seq = 0;
  std::int32_t pos = 0;
};
KVO_DESCRIBE(CanResume, (seq, "sequence, by number"), (pos, "position, from 0"))
KVO_DESCRIBE(CanResume::Returns, (value, "whether the sequence may go on there"))

/// One call of the shift function, as the harness saw it.
struct ShiftCall {
  std::optional<std::int64_t> cache = std::nullopt;  ///< member, in a wrapper
  std::int64_t layer = 0;
  std::vector<std::int32_t> offsets;
  std::vector<std::int64_t> k_shape;  ///< [cells, kv_heads, k_head_dim]
};
KVO_DESCRIBE(ShiftCall, (cache, "member, in a wrapper; absent elsewhere"),
             (layer, "layer, counted from 0"), (offsets, "positions seen so far, by cache"),
             (k_shape, "of the keys: cells, kv_heads, k_head_dim"))

struct Remove {
  static constexpr std::string_view kName = "remove";
  static constexpr std::string_view kDoc =
      "Takes positions out of a sequence, moves later ones (OK-60).";
  struct Returns {
    std::optional<std::vector<ShiftCall>> shift_calls = std::nullopt;  ///< absent: none
  };
  std::int64_t seq = 0;
  std::int32_t begin = 0;
  std::int32_t end = 0;
};
KVO_DESCRIBE(Remove, (seq, "sequence, by number"), (begin, "first position of the range"),
             (end, "position behind the last one of the range"))
KVO_DESCRIBE(Remove::Returns, (shift_calls, "calls of the shift function, in order; absent: none"))

struct EncoderCached {
  static constexpr std::string_view kName = "encoder_cached";
  static constexpr std::string_view kDoc = "Whether an encoder holds a result (OK-73).";
  struct Returns {
    bool value = false;
  };
};
KVO_DESCRIBE(EncoderCached)
KVO_DESCRIBE(EncoderCached::Returns, (value, "whether a result is held"))

struct Close {
  static constexpr std::string_view kName = "close";
  static constexpr std::string_view kDoc = "Releases layer contexts (OK-69).";
  using Returns = Nothing;
};
KVO_DESCRIBE(Close)

#define KVO_POSITIONAL_OPERATIONS                                                               \
  positional::SetConfig, positional::Init, positional::StartForward, positional::SetLayer,      \
      positional::SetLayerType, positional::UnderlyingCache, positional::Put, positional::Get,  \
      positional::SetCausal, positional::CopyPrefix, positional::CanResume, positional::Remove, \
      positional::EncoderCached, positional::Close
using Ops = boost::mp11::mp_list<KVO_POSITIONAL_OPERATIONS>;

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
