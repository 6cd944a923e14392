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

#include <functional>
#include <memory>
#include <string>

#include "reference/provider/cache.hpp"

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

}  // namespace kvo::provider
