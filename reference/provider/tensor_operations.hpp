// reference/provider/tensor_operations.hpp: the operations of `provider.tensor`, described.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/provider/operations.hpp"
#include "reference/provider/tensor.hpp"

namespace kvo::provider {

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
KVO_DESCRIBE(NewTensor, (cache, "which cache of the case, as numbered when it was made"),
             (num_layers, "layers"), (max_seq_len, "positions of a sequence at most"),
             (dtype, "element type: f32, f16, bf16, i32"),
             (device, "where the cache lives: cpu or gpu"),
             (stream, "whether work is queued on a stream of its own"),
             (malloc_fail, "allocations that fail first, as a count; absent: none"))

struct UpdateTensor {
  static constexpr std::string_view kName = "update";
  static constexpr std::string_view kDoc =
      "Adds rows behind a layer's length, from the host or from the device (ZF-54 to ZF-59).";
  using Returns = Nothing;
  static constexpr auto kAxes = kRowAxes;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  Nullable<Tensor> k;
  Nullable<Tensor> v;
  std::optional<Place> k_device = std::nullopt;  ///< absent: cpu
  std::optional<Place> v_device = std::nullopt;  ///< absent: cpu
};
KVO_DESCRIBE(UpdateTensor, (cache, "which cache of the case, as numbered when it was made"),
             (layer, "layer, counted from 0"), (k, "keys"), (v, "values"),
             (k_device, "where the keys come from: cpu or gpu; absent: cpu"),
             (v_device, "where the values come from: cpu or gpu; absent: cpu"))

struct GetFullBuffer {
  static constexpr std::string_view kName = "get_full_buffer";
  static constexpr std::string_view kDoc =
      "The whole buffers of a layer on the device; keep: false gives no handle (ZF-62).";
  using Returns = Found;
  std::optional<std::int64_t> cache = std::nullopt;
  std::int64_t layer = 0;
  std::optional<bool> keep = std::nullopt;  ///< absent: true
};
KVO_DESCRIBE(GetFullBuffer, (cache, "which cache of the case, as numbered when it was made"),
             (layer, "layer, counted from 0"),
             (keep, "false: the result gets no handle; absent: true"))

struct Counters {
  static constexpr std::string_view kName = "counters";
  static constexpr std::string_view kDoc = "What the counters hold; null without them (ZF-53).";
  struct Returns {
    Nullable<std::int64_t> gpu_counter;
    Nullable<std::int64_t> kv_seq_len;
  };
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(Counters, (cache, "which cache of the case, as numbered when it was made"))
KVO_DESCRIBE(Counters::Returns,
             (gpu_counter, "length counter on the device, in positions; null if absent"),
             (kv_seq_len, "length of layer 0 on the device, in positions; null if absent"))

struct SyncTensorCounter {
  static constexpr std::string_view kName = "sync_counter";
  static constexpr std::string_view kDoc = "Takes all lengths from gpu_counter (ZF-65).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(SyncTensorCounter, (cache, "which cache of the case, as numbered when it was made"))

struct FreeTensor {
  static constexpr std::string_view kName = "free";
  static constexpr std::string_view kDoc = "Drops buffers, lengths and counters (ZF-66).";
  using Returns = Nothing;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(FreeTensor, (cache, "which cache of the case, as numbered when it was made"))

struct MaxSeqLen {
  static constexpr std::string_view kName = "max_seq_len";
  static constexpr std::string_view kDoc = "The positions that a layer has room for (ZF-53).";
  using Returns = Number;
  std::optional<std::int64_t> cache = std::nullopt;
};
KVO_DESCRIBE(MaxSeqLen, (cache, "which cache of the case, as numbered when it was made"))

struct InjectTensor {
  static constexpr std::string_view kName = "inject";
  static constexpr std::string_view kDoc =
      "The n-th kernel launch from now fails (absent: none), the next n allocations fail (absent: "
      "as before).";
  using Returns = Nothing;
  std::optional<std::int64_t> malloc_fail = std::nullopt;
  std::optional<std::int64_t> kernel_fail_at = std::nullopt;
};
KVO_DESCRIBE(InjectTensor,
             (malloc_fail, "allocations that fail from now on, as a count; absent: as before"),
             (kernel_fail_at, "which launch from now on fails, counted from 1; absent: none"))

/// The config of a case: repeats what its first operations say, for people; not used.
struct TensorConfig {
  std::optional<std::int64_t> num_layers = std::nullopt;
  std::optional<std::int64_t> max_seq_len = std::nullopt;
  std::optional<std::string> dtype = std::nullopt;
  std::optional<Place> device = std::nullopt;
  std::optional<bool> stream = std::nullopt;
};
KVO_DESCRIBE(TensorConfig, (num_layers, "layers"), (max_seq_len, "positions of a sequence at most"),
             (dtype, "fp16 stores fp16 on the device"), (device, "cpu or gpu"),
             (stream, "whether the engine offers a stream"))

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
