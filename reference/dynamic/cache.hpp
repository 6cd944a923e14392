// reference/dynamic/cache.hpp: the contract `dynamic`: a list of layers that each grow or slide.
//
// Words    layer      keys and values of one layer of a model, or a convolution and a recurrent
//                     state, or both, or nothing (a dummy).
//          window     tokens that a token of a sliding layer attends to, itself counted.
//          recording  sliding and linear layers keep what they would evict, until a crop.
//          beam       a row of the batch.
// Shapes   keys and values are [batch, head, token, dim]; initialized without data they are [0].
//          A convolution state is [batch, ..., token], a recurrent state [batch, ...].
// Layers   are numbered from 0; negative numbers count from the end (HF-2).
// Views    what update returns is a copy (HF-11), but the buffers of a static layer show later
//          changes until a reorder replaces them (HF-31, HF-41).
// Errors   as of HF-6. kPrecondition: outside of the contract; nothing has changed.
// Source   rules HF-1 to HF-71.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/describe/enum.hpp>
#include <boost/json/fwd.hpp>

#include "reference/contract/values/result.hpp"
#include "reference/contract/values/tensor.hpp"
#include "reference/dynamic/quirks.hpp"

namespace kvo::dynamic {

/// A tensor that its holders only read; null: none.
using Rows = std::shared_ptr<const Tensor>;

struct KeysValues {
  Rows k;
  Rows v;
};

/// What a layer stores; a static layer's whole buffers, the residual part of a quantized one.
struct LayerState {
  bool initialized = false;
  Rows k = nullptr;
  Rows v = nullptr;
};

/// Sizes of the mask for the next tokens (HF-12, HF-22, HF-33, HF-38).
struct MaskSizes {
  std::int64_t kv_length = 0;
  std::int64_t kv_offset = 0;
};

/// A bool in a list, which has an address there.
struct Flag {
  bool value = false;

  [[nodiscard]] boost::json::value to_json() const;
  [[nodiscard]] bool from_json(const boost::json::value& in);
  friend bool operator==(const Flag&, const Flag&) = default;
};

/// HF-5.
struct Properties {
  std::vector<Flag> is_sliding = {};  ///< [layer]
  bool is_croppable = false;
  bool is_compileable = false;
  bool is_initialized = false;
  std::int64_t batch_size = -1;  ///< -1: none is known
};

/// A cache of a pair: that of the decoder itself, or that of its attention to the encoder.
enum class Side : std::uint8_t { kSelf, kCross };
BOOST_DESCRIBE_ENUM(Side, kSelf, kCross)

enum class LayerType : std::uint8_t {
  kFullAttention,
  kSlidingAttention,
  kChunkedAttention,
  kIndexedAttention,
  kConv,
  kLinearAttention,
  kHybrid,
  kHybridSliding,
  kMoe,
  kMlp,
  kDummy
};
BOOST_DESCRIBE_ENUM(LayerType, kFullAttention, kSlidingAttention, kChunkedAttention,
                    kIndexedAttention, kConv, kLinearAttention, kHybrid, kHybridSliding, kMoe, kMlp,
                    kDummy)

/// How full-attention layers store keys and values.
enum class Storing : std::uint8_t { kDynamic, kStatic, kQuantizedIdentity, kQuantizedFp8 };

/// One list of layers.
struct ListOptions {
  Storing storing = Storing::kDynamic;
  bool lazy = false;                   ///< update adds plain layers (HF-2)
  std::vector<LayerType> layers = {};  ///< empty where lazy
  std::int64_t sliding_window = 1;
  std::int64_t chunk = 1;            ///< the window of chunked layers
  std::int64_t max_cache_len = 1;    ///< tokens of a static layer
  std::int64_t residual_length = 1;  ///< tokens before a quantized layer flushes (HF-61)
};

struct CacheOptions {
  QuirkSet<Quirk> quirks = QuirkSet<Quirk>(Profile::kOriginal);
  ListOptions self = {};
  std::optional<ListOptions> cross = std::nullopt;  ///< of a pair
};

/// A cache of the contract. A method carries out the operation of its name. In profile documented
/// no error changes anything. What a cache does not offer is kNotSupported.
class Cache {
 public:
  virtual ~Cache() = default;

  /// Stores tokens; k and v agree in tokens. Null: none, which only a dummy layer takes (HF-51).
  /// Errors  kOutOfRange: no such layer; kBadShape; kFull (HF-30); kNotSupported: a dummy.
  [[nodiscard]] virtual Result<KeysValues> update(std::optional<Side> side, std::int64_t layer,
                                                  const Tensor* k, const Tensor* v) = 0;
  /// The length of a layer, 0 where there is no such layer yet (HF-4). The object may change with
  /// the layer (HF-32).
  /// Errors  kNotSupported: a layer other than 0 without attention, or no layer has attention.
  [[nodiscard]] virtual Result<std::shared_ptr<const std::int64_t>> length(
      std::int64_t layer) const = 0;
  /// Errors  as of length.
  [[nodiscard]] virtual Result<MaskSizes> get_mask_sizes(std::int64_t query_length,
                                                         std::int64_t layer) const = 0;
  /// Of a layer, or of all of them; -1: none (HF-4).
  /// Errors  kOutOfRange: a negative number without a layer; kNoMaximumOfNothing: kOther.
  [[nodiscard]] virtual Result<std::int64_t> get_max_length(
      std::optional<std::int64_t> layer) const = 0;
  /// Errors  kOutOfRange: no such layer; kNotSupported: a linear layer has neither keys nor values.
  [[nodiscard]] virtual Result<LayerState> state(std::optional<Side> side,
                                                 std::int64_t layer) const = 0;
  [[nodiscard]] virtual std::int64_t num_layers() const = 0;
  /// Errors  kOther: layers have different batch sizes.
  [[nodiscard]] virtual Result<Properties> props() const = 0;
  /// Removes -tokens_to_remove tokens from every layer (HF-13, HF-23, HF-24, HF-53, HF-63).
  /// Errors  kNotSupported: a positive number, or the past is not recorded.
  [[nodiscard]] virtual Status crop(std::int64_t tokens_to_remove) = 0;
  /// Rows beam_idx[0], beam_idx[1], ... become the batch (HF-14, HF-35, HF-62).
  /// Errors  kOutOfRange: no such row; negative ones are none.
  [[nodiscard]] virtual Status reorder_cache(std::span<const std::int64_t> beam_idx) = 0;
  /// Each row of the batch becomes several (HF-15).
  /// Errors  kOutOfRange: a negative number.
  [[nodiscard]] virtual Status batch_repeat_interleave(std::int64_t repeats) = 0;
  /// As reorder_cache, but negative numbers count from the end (HF-16).
  /// Errors  kOutOfRange: no such row.
  [[nodiscard]] virtual Status batch_select_indices(std::span<const std::int64_t> indices) = 0;
  virtual void reset() = 0;
  virtual void activate_past_recording() = 0;
  /// Allocates for every layer that is not initialized (HF-36).
  /// Errors  kPrecondition: too large; kNotSupported: a pair.
  [[nodiscard]] virtual Status early_initialization(std::int64_t batch_size, std::int64_t num_heads,
                                                    std::int64_t head_dim);
  /// Moves a layer to host memory, which does not show (HF-70).
  /// Errors  kOutOfRange: no such layer.
  [[nodiscard]] virtual Status layer_offload(std::int64_t layer);
  /// Moves it back. Errors  as of layer_offload.
  [[nodiscard]] virtual Status layer_prefetch(std::int64_t layer);
  /// Adds to the convolution state, and returns the old state and what was added (HF-52).
  /// Errors  kOutOfRange: no such layer; kNotSupported: no linear layer; kBadShape.
  [[nodiscard]] virtual Result<Rows> update_conv_state(
      std::int64_t layer, const Tensor& state, std::optional<std::int64_t> conv_kernel_size);
  /// Null: none yet. Errors  as of update_conv_state.
  [[nodiscard]] virtual Result<Rows> get_conv_state(std::int64_t layer) const;
  /// Returns the new state. Errors  as of update_conv_state.
  [[nodiscard]] virtual Result<Rows> update_recurrent_state(std::int64_t layer,
                                                            const Tensor& state);
  /// Null: none yet. Errors  as of update_conv_state.
  [[nodiscard]] virtual Result<Rows> get_recurrent_state(std::int64_t layer) const;
  /// Of a layer, or of the last linear one. Errors  kNotSupported: no linear layer.
  [[nodiscard]] virtual Result<bool> has_previous_state(std::optional<std::int64_t> layer) const;
  /// Flags of the layers that the cross cache had when the pair was made (HF-65).
  /// Errors  kNotSupported: no pair.
  [[nodiscard]] virtual Result<std::vector<Flag>> is_updated() const;
};

/// Makes a cache.
using MakeCache = std::function<std::unique_ptr<Cache>(const CacheOptions& options)>;

}  // namespace kvo::dynamic
