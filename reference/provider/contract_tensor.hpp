// reference/provider/contract_tensor.hpp: the cache kind `provider.tensor`.
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

#include "reference/provider/contract.hpp"

namespace kvo::provider {

/// What a tensor cache is made of.
struct TensorSetup {
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;                    ///< positions
  std::string dtype;                               ///< exactly "fp16" stores fp16 on the device
  bool stream = false;                             ///< the engine offers one: there are counters
  std::shared_ptr<DeviceMemory> memory = nullptr;  ///< null: the engine has no device
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
  /// the layer is on the device (ZF-62).
  [[nodiscard]] virtual Result<std::optional<KvPair>> full_buffer(std::int64_t layer) = 0;
  /// Takes the length of every layer from gpu_counter (ZF-65).
  /// Errors  kNotSupported "no_counter"; documented: kBadPosition: outside [0, max_seq_len].
  [[nodiscard]] virtual Status sync_counter() = 0;
  [[nodiscard]] virtual CounterPtrs counters() const = 0;
  /// Drops buffers, lengths and counters; results on device memory dangle from now on (ZF-66).
  virtual void free() = 0;
};

// ---- Operations. An absent `cache` is cache 0. ----

/// Where the cells of a tensor live.
enum class Place : std::uint8_t { kCpu, kGpu };
BOOST_DESCRIBE_ENUM(Place, kCpu, kGpu)

struct NewTensor {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc = "Makes a cache and its counters (ZF-53).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;
  std::string dtype;
  Place device = Place::kCpu;
  bool stream = false;
  std::optional<std::int64_t> malloc_fail = std::nullopt;  ///< so many allocations fail first
};
BOOST_DESCRIBE_STRUCT(NewTensor, (),
                      (cache, num_layers, max_seq_len, dtype, device, stream, malloc_fail))

struct UpdateTensor {
  static constexpr std::string_view kName = "update";
  static constexpr std::string_view kDoc =
      "Adds rows behind a layer's length, from the host or from the device (ZF-54 to ZF-59).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  Nullable<Tensor> k;
  Nullable<Tensor> v;
  std::optional<Place> k_device = std::nullopt;  ///< absent: cpu
  std::optional<Place> v_device = std::nullopt;  ///< absent: cpu
};
BOOST_DESCRIBE_STRUCT(UpdateTensor, (), (cache, layer, k, v, k_device, v_device))

struct GetFullBuffer {
  static constexpr std::string_view kName = "get_full_buffer";
  static constexpr std::string_view kDoc =
      "The whole buffers of a layer on the device; keep: false gives no handle (ZF-62).";
  using Returns = Found;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  std::optional<bool> keep = std::nullopt;  ///< absent: true
};
BOOST_DESCRIBE_STRUCT(GetFullBuffer, (), (cache, layer, keep))

struct Counters {
  static constexpr std::string_view kName = "counters";
  static constexpr std::string_view kDoc = "What the counters hold; null without them (ZF-53).";
  struct Returns {
    Nullable<std::int64_t> gpu_counter;
    Nullable<std::int64_t> kv_seq_len;
  };
  std::optional<std::int64_t> cache = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(Counters, (), (cache))
BOOST_DESCRIBE_STRUCT(Counters::Returns, (), (gpu_counter, kv_seq_len))

struct SyncTensorCounter {
  static constexpr std::string_view kName = "sync_counter";
  static constexpr std::string_view kDoc = "Takes all lengths from gpu_counter (ZF-65).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(SyncTensorCounter, (), (cache))

struct FreeTensor {
  static constexpr std::string_view kName = "free";
  static constexpr std::string_view kDoc = "Drops buffers, lengths and counters (ZF-66).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(FreeTensor, (), (cache))

struct MaxSeqLen {
  static constexpr std::string_view kName = "max_seq_len";
  static constexpr std::string_view kDoc = "The positions that a layer has room for (ZF-53).";
  using Returns = Number;
  std::optional<std::int64_t> cache = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(MaxSeqLen, (), (cache))

struct InjectTensor {
  static constexpr std::string_view kName = "inject";
  static constexpr std::string_view kDoc =
      "The n-th kernel launch from now fails (absent: none), the next n allocations fail (absent: "
      "as before).";
  using Returns = Nothing;
  std::optional<std::int64_t> malloc_fail = std::nullopt;
  std::optional<std::int64_t> kernel_fail_at = std::nullopt;
};
BOOST_DESCRIBE_STRUCT(InjectTensor, (), (malloc_fail, kernel_fail_at))

using TensorOps = boost::mp11::mp_list<NewTensor, UpdateTensor, Get, Reread, Poke, Truncate, Reset,
                                       SeqLen, GetFullBuffer, Counters, SyncTensorCounter,
                                       FreeTensor, MaxSeqLen, InjectTensor>;

/// The cache kind `provider.tensor`.
[[nodiscard]] const CacheKind& tensor_kind();

/// Makes a cache. A failed allocation is no error: the counters are absent then (ZF-53).
/// Errors  kPrecondition: negative num_layers; documented: kOutOfRange "num_layers", "max_seq_len".
using MakeTensor =
    std::function<Result<std::unique_ptr<TensorBacked>>(const TensorSetup& setup, Profile profile)>;

/// A subject whose caches come from `make`; those on a device lie in the memory of `make_memory`.
[[nodiscard]] Subject make_tensor_subject(std::string engine, std::string doc, MakeTensor make,
                                          MakeDeviceMemory make_memory);

}  // namespace kvo::provider
