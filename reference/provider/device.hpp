// reference/provider/device.hpp: the cache kind `provider.device`.
//
// A cache whose rows and position counter live in device memory. A session has one cache and one
// device; `new` replaces the cache and quietly closes the earlier one.
//
// Words    width    num_heads * head_dim: the f32 cells of one position.
//          length   positions held; in profile documented, those that every layer holds.
//          calls    the calls to the device in an operation, also of one that failed.
// Source   rules ZF-42 to ZF-52.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/device/calls.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

/// What a device cache is made of; null memory may be asked for.
struct DeviceOptions {
  std::shared_ptr<Device> memory;
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;  ///< positions
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 0;
};

/// The buffers of one layer, [max_seq_len][width] f32 cells each, and the length.
struct LayerPointers {
  DevicePtr k;
  DevicePtr v;
  std::int64_t length = 0;
};

/// Device arrays with the K and the V pointers of all layers.
struct PointerArrays {
  DevicePtr k;
  DevicePtr v;
};

/// A cache of the kind. Errors change nothing but cells at the position that was being written;
/// those of the device (other:memcpy_failed and so on) are passed on. The destructor frees nothing.
class DeviceKv {
 public:
  virtual ~DeviceKv() = default;

  /// Writes the position `pos` of a layer from host memory (ZF-44).
  /// Shape   k, v: [width].
  /// Errors  kOutOfRange "layer"; kBadPosition: pos is not the next one; kFull; kBadShape "k", "v";
  ///         documented: kClosed before all.
  [[nodiscard]] virtual Status append(std::int64_t layer, std::span<const float> k,
                                      std::span<const float> v, std::int64_t pos) = 0;
  /// Writes a layer's next position, which the kernels take from the counter (ZF-46, ZF-47).
  /// Shape   k, v: [width] f32 cells in device memory.
  /// Errors  kOutOfRange "layer"; kFull; kNotSupported "kernels"; documented: kClosed before all,
  ///         kBadPosition: the layer has the position already.
  [[nodiscard]] virtual Status append_gpu(std::int64_t layer, DevicePtr k, DevicePtr v) = 0;
  /// Positions held (ZF-48).
  [[nodiscard]] virtual std::int64_t seq_len() const = 0;
  /// Takes the length from the counter (ZF-48).
  /// Errors  kClosed; documented: kBadPosition: the counter is outside [0, max_seq_len].
  [[nodiscard]] virtual Status sync_counter() = 0;
  /// The counter's address; null after close.
  [[nodiscard]] virtual DevicePtr counter() const = 0;
  /// Null, null, 0 for a layer out of range (ZF-49).
  [[nodiscard]] virtual LayerPointers pointers(std::int64_t layer) const = 0;
  /// Copies the pointers of all layers to the device (ZF-50). Documented: once; kClosed.
  [[nodiscard]] virtual Result<PointerArrays> pointer_arrays() = 0;
  /// Length and counter 0; cells stay; a failed copy is no error (ZF-51).
  virtual void reset() = 0;
  /// Frees everything, goes on after errors, and returns the first one (ZF-52).
  [[nodiscard]] virtual Status close() = 0;
};

/// What operations answer that return nothing but the calls they made.
KVO_RECORD(Calls, (std::vector<DeviceCall>, calls, "device calls in order, with their arguments"))

enum class Kernels : std::uint8_t { kHost, kUnavailable };
BOOST_DESCRIBE_ENUM(Kernels, kHost, kUnavailable)

KVO_OPERATION(NewDevice, new_, "Makes a cache and allocates its buffers (ZF-42, ZF-43).", Calls,
              (std::int64_t, num_layers, "layers"),
              (std::int64_t, max_seq_len, "positions of a sequence at most"),
              (std::int64_t, num_heads, "heads"), (std::int64_t, head_dim, "elements of one head"),
              (bool, nil_allocator, "whether the allocator is null"),
              (Kernels, kernels, "kernels that are offered: host or unavailable", Kernels::kHost))
KVO_OPERATION(Append, append, "Writes a layer's position from host memory (ZF-44).", Calls,
              (LayerNumber, layer), (std::int64_t, seq_pos, "position to write at, from 0"),
              (std::vector<float>, k, "keys"), (std::vector<float>, v, "values"))
KVO_OPERATION(AppendGpu, append_gpu,
              "Writes a layer's next position from device memory with kernels (ZF-46).", Calls,
              (LayerNumber, layer), (std::vector<float>, k, "keys"),
              (std::vector<float>, v, "values"))
KVO_RECORD(PointersReturns, (ShownPtr, k, "keys"), (ShownPtr, v, "values"),
           (std::int64_t, n, "how many, or at most how many"))
KVO_OPERATION(Pointers, pointers, "The buffers of a layer, and the length (ZF-49).",
              PointersReturns, (LayerNumber, layer))
KVO_RECORD(CounterPtrReturns, (ShownPtr, ptr, "device address: buffer and offset; null or host"))
KVO_OPERATION(CounterPtr, counter_ptr, "The address of the counter (ZF-48).", CounterPtrReturns)
KVO_RECORD(ReadCounterReturns,
           (Nullable<std::int64_t>, n, "what the counter holds; null when it is freed"))
KVO_OPERATION(ReadCounter, read_counter, "What the counter holds; null when it is freed (ZF-47).",
              ReadCounterReturns)
KVO_RECORD(DevicePointerArraysReturns,
           (std::vector<DeviceCall>, calls, "device calls in order, with their arguments"),
           (std::optional<ShownPtr>, k, "keys"), (std::optional<ShownPtr>, v, "values"),
           (std::optional<std::vector<ShownPtr>>, k_content,
            "where each layer's keys lie on the device"),
           (std::optional<std::vector<ShownPtr>>, v_content,
            "where each layer's values lie on the device"))
KVO_OPERATION(DevicePointerArrays, device_pointer_arrays,
              "Copies all layers' pointers to the device (ZF-50).", DevicePointerArraysReturns)
KVO_RECORD_WITH((static constexpr std::array<std::string_view, 2> kAxes{"position", "cell"};),
                ReadBufferReturns, (bool, found, "whether there was anything"),
                (std::optional<Tensor>, k, "keys"), (std::optional<Tensor>, v, "values"))
KVO_OPERATION(ReadBuffer, read_buffer, "A layer's whole buffers, stale cells included (ZF-51).",
              ReadBufferReturns, (LayerNumber, layer))
KVO_RECORD(LiveBuffersReturns,
           (std::vector<std::int64_t>, bufs, "device buffers that are alive, ascending"))
KVO_OPERATION(LiveBuffers, live_buffers, "The numbers of the buffers not given back, ascending.",
              LiveBuffersReturns)
KVO_OPERATION(SyncDeviceCounter, sync_counter, "Takes the length from the counter (ZF-48).", Calls)
KVO_OPERATION(ResetDevice, reset, "Length and counter 0; the cells stay (ZF-51).", Calls)
KVO_OPERATION(Close, close, "Frees everything (ZF-52).", Calls)
KVO_OPERATION(
    InjectDevice, inject,
    "The n-th such call from now fails; an absent one stays as it was, 0 takes it back.", Nothing,
    (std::optional<std::int64_t>, alloc_fail_at,
     "which allocation from now on fails, counted from 1"),
    (std::optional<std::int64_t>, free_fail_at, "which free from now on fails, counted from 1"),
    (std::optional<std::int64_t>, memcpy_fail_at, "which copy from now on fails, counted from 1"),
    (std::optional<std::int64_t>, kernel_fail_at,
     "which kernel launch from now on fails, counted from 1"))

/// The config of a case: repeats what its first operations say, for people; not used.
KVO_RECORD(DeviceConfig, (std::optional<std::int64_t>, num_layers, "layers"),
           (std::optional<std::int64_t>, max_seq_len, "positions of a sequence at most"),
           (std::optional<std::int64_t>, num_heads, "heads"),
           (std::optional<std::int64_t>, head_dim, "elements of one head"),
           (std::optional<Kernels>, kernels, "whether there are kernels"))

#define KVO_DEVICE_OPERATIONS                                                     \
  provider::NewDevice, provider::Append, provider::AppendGpu, provider::Pointers, \
      provider::CounterPtr, provider::ReadCounter, provider::DevicePointerArrays, \
      provider::ReadBuffer, provider::LiveBuffers, provider::SyncDeviceCounter,   \
      provider::ResetDevice, provider::Close, provider::InjectDevice
using DeviceOps = boost::mp11::mp_list<NewDevice, Append, AppendGpu, SeqLen, Pointers, CounterPtr,
                                       ReadCounter, DevicePointerArrays, ReadBuffer, LiveBuffers,
                                       SyncDeviceCounter, ResetDevice, Close, InjectDevice>;

/// The cache kind `provider.device`.
[[nodiscard]] const CacheKind& device_kind();

/// Errors  as MakeDevice says of options (ZF-42).
[[nodiscard]] inline Status check(const DeviceOptions& options, QuirkSet<Quirk> quirks) {
  if (!options.memory) return fail_other("nil_allocator");
  for (const auto& [size, name] :
       {std::pair(options.num_layers, "num_layers"), std::pair(options.max_seq_len, "max_seq_len"),
        std::pair(options.num_heads, "num_heads"), std::pair(options.head_dim, "head_dim")})
    if (size <= 0) return fail(Code::kOutOfRange, name);
  const std::array<std::int64_t, 4> bytes{options.max_seq_len, options.num_heads, options.head_dim,
                                          sizeof(float)};
  if (!element_count(bytes))
    return fail(quirks.has(Quirk::kOverflowAborts) ? Code::kPrecondition : Code::kOutOfRange,
                "max_seq_len");
  return {};
}

/// Makes a cache.
/// Errors  other:nil_allocator; kOutOfRange with the name of a size that is not positive (ZF-42);
///         kOutOfRange "max_seq_len", with kOverflowAborts kPrecondition: a product overflows;
///         those of the memory, after everything was given back (ZF-43).
using MakeDevice = std::function<Result<std::unique_ptr<DeviceKv>>(const DeviceOptions& options,
                                                                   QuirkSet<Quirk> quirks)>;

/// A subject whose caches come from `make` and lie in the memory of `make_memory`.
[[nodiscard]] Subject make_device_subject(std::string variant, std::string doc, MakeDevice make,
                                          OpenDevice make_memory);

}  // namespace kvo::provider

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_DEVICE_OPERATIONS)
}  // namespace kvo
