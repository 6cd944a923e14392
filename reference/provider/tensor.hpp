// reference/provider/tensor.hpp: the cache kind `provider.tensor`.
//
// A cache whose layers live on the host or on the device, wherever their first rows came from. A
// session has one device and several caches over it; `new` with the number of an earlier cache
// replaces it.
//
// Words    counters   two int32 in device memory that kernels of a caller read: gpu_counter, the
//                     position of the next decode step, and kv_seq_len, the length of layer 0.
//          decode     an update of one position.
// Source   rules ZF-53 to ZF-67.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/provider/operations.hpp"

namespace kvo::provider {

/// What a tensor cache is made of.
struct TensorOptions {
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;              ///< positions
  std::string dtype;                         ///< exactly "fp16" stores fp16 on the device
  bool stream = false;                       ///< the engine offers one: there are counters
  std::shared_ptr<Device> memory = nullptr;  ///< null: the engine has no device
};

/// The addresses of the counters; null without them.
struct CounterPtrs {
  DevicePtr gpu_counter;
  DevicePtr kv_seq_len;
};

/// A cache of the kind. Original: an update that fails on the device may leave a layer allocated, a
/// counter moved or cells written (ZF-55 to ZF-59).
///
/// Launches  A decode step whose rows and layer are on the device launches, in this order: the
///           increment of kv_seq_len (layer 0), K, V (documented: one a batch row each), and the
///           increment of gpu_counter (last layer). Every update of one position of layer 0
///           launches that first increment. Storing other rows as fp16 launches one conversion for
///           K and one for V (documented: one a batch row each), and so does showing them
///           (documented: one a batch row each unless the rows lie together). Documented, rows
///           without cells launch nothing. Promotion launches nothing.
class TensorBacked : public Provider {
 public:
  [[nodiscard]] virtual std::int64_t max_seq_len() const = 0;
  /// The whole buffers of a layer, [batch, max_seq_len, dim], stale cells included; nothing unless
  /// the layer is on the device (ZF-62). Errors  as get.
  [[nodiscard]] virtual Result<std::optional<KvPair>> full_buffer(std::int64_t layer) = 0;
  /// Takes the length of every layer from gpu_counter (ZF-65).
  /// Errors  kNotSupported "no_counter"; documented: kBadPosition: outside [0, max_seq_len].
  [[nodiscard]] virtual Status sync_counter() = 0;
  [[nodiscard]] virtual CounterPtrs counters() const = 0;
  /// Drops buffers, lengths and counters; results on device memory dangle from now on (ZF-66).
  virtual void free() = 0;
};

/// Makes a cache. A failed allocation is no error: the counters are absent then (ZF-53).
/// Errors  kOutOfRange: "num_layers" or "max_seq_len" is negative; with kTensorSizesUnchecked
///         kPrecondition for num_layers alone.
using MakeTensor = std::function<Result<std::unique_ptr<TensorBacked>>(const TensorOptions& options,
                                                                       QuirkSet<Quirk> quirks)>;

/// Where the cells of a tensor live.
enum class Place : std::uint8_t { kCpu, kGpu };
BOOST_DESCRIBE_ENUM(Place, kCpu, kGpu)

KVO_OPERATION(NewTensor, new_, "Makes a cache and its counters (ZF-53).", Nothing,
              (Maybe<CacheHandle>, cache), (std::int64_t, num_layers, "layers"),
              (std::int64_t, max_seq_len, "positions of a sequence at most"),
              (std::string, dtype, "element type: f32, f16, bf16, i32"),
              (Place, device, "where the cache lives: cpu or gpu", Place::kCpu),
              (bool, stream, "whether work is queued on a stream of its own"),
              (std::optional<std::int64_t>, malloc_fail,
               "allocations that fail first, as a count; absent: none"))
KVO_OPERATION_WITH(
    (static constexpr auto kAxes = kRowAxes;), UpdateTensor, update,
    "Adds rows after a layer's length, from the host or from the device (ZF-54 to ZF-59).", Nothing,
    (Maybe<CacheHandle>, cache), (LayerNumber, layer), (Nullable<Tensor>, k, "keys"),
    (Nullable<Tensor>, v, "values"),
    (std::optional<Place>, k_device, "where the keys come from: cpu or gpu; absent: cpu"),
    (std::optional<Place>, v_device, "where the values come from: cpu or gpu; absent: cpu"))
KVO_OPERATION(GetFullBuffer, get_full_buffer,
              "The whole buffers of a layer on the device; keep: false gives no handle (ZF-62).",
              Found, (Maybe<CacheHandle>, cache), (LayerNumber, layer),
              (std::optional<bool>, keep, "false: the result gets no handle; absent: true"))
KVO_RECORD(CountersReturns,
           (Nullable<std::int64_t>, gpu_counter,
            "length counter on the device, in positions; null if absent"),
           (Nullable<std::int64_t>, kv_seq_len,
            "length of layer 0 on the device, in positions; null if absent"))
KVO_OPERATION(Counters, counters, "What the counters hold; null without them (ZF-53).",
              CountersReturns, (Maybe<CacheHandle>, cache))
KVO_OPERATION(SyncTensorCounter, sync_counter, "Takes all lengths from gpu_counter (ZF-65).",
              Nothing, (Maybe<CacheHandle>, cache))
KVO_OPERATION(FreeTensor, free, "Drops buffers, lengths and counters (ZF-66).", Nothing,
              (Maybe<CacheHandle>, cache))
KVO_OPERATION(MaxSeqLen, max_seq_len, "The positions that a layer has room for (ZF-53).", Number,
              (Maybe<CacheHandle>, cache))
KVO_OPERATION(InjectTensor, inject,
              "The n-th kernel launch from now fails (absent: none), the next n allocations fail "
              "(absent: as before).",
              Nothing,
              (std::optional<std::int64_t>, malloc_fail,
               "allocations that fail from now on, as a count; absent: as before"),
              (std::optional<std::int64_t>, kernel_fail_at,
               "which launch from now on fails, counted from 1; absent: none"))

/// The config of a case: repeats what its first operations say, for people; not used.
KVO_RECORD(TensorConfig, (std::optional<std::int64_t>, num_layers, "layers"),
           (std::optional<std::int64_t>, max_seq_len, "positions of a sequence at most"),
           (std::optional<std::string>, dtype, "fp16 stores fp16 on the device"),
           (std::optional<Place>, device, "cpu or gpu"),
           (std::optional<bool>, stream, "whether the engine offers a stream"))

#define KVO_TENSOR_OPERATIONS                                                               \
  provider::NewTensor, provider::UpdateTensor, provider::GetFullBuffer, provider::Counters, \
      provider::SyncTensorCounter, provider::FreeTensor, provider::MaxSeqLen,               \
      provider::InjectTensor
using TensorOps = boost::mp11::mp_list<NewTensor, UpdateTensor, Get, Reread, Poke, Truncate, Reset,
                                       SeqLen, GetFullBuffer, Counters, SyncTensorCounter,
                                       FreeTensor, MaxSeqLen, InjectTensor>;

/// The cache kind `provider.tensor`.
[[nodiscard]] const CacheKind& tensor_kind();

/// A subject whose caches come from `make`; those on a device lie in the memory of `make_memory`.
[[nodiscard]] Subject make_tensor_subject(std::string variant, std::string doc, MakeTensor make,
                                          OpenDevice make_memory);

}  // namespace kvo::provider

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_TENSOR_OPERATIONS)
}  // namespace kvo
