// reference/provider/device_operations.hpp: the operations of `provider.device`, described.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/device/calls.hpp"
#include "reference/provider/device.hpp"
#include "reference/provider/operations.hpp"

namespace kvo::provider {

/// What operations answer that return nothing but the calls they made.
struct Calls {
  std::vector<DeviceCall> calls;
};
KVO_DESCRIBE(Calls, (calls, "device calls in order, with their arguments"))

enum class Kernels : std::uint8_t { kHost, kUnavailable };
BOOST_DESCRIBE_ENUM(Kernels, kHost, kUnavailable)

struct NewDevice {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc =
      "Makes a cache and allocates its buffers (ZF-42, ZF-43).";
  using Returns = Calls;
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 0;
  bool nil_allocator = false;
  Kernels kernels = Kernels::kHost;
};
KVO_DESCRIBE(NewDevice, (num_layers, "layers"), (max_seq_len, "positions of a sequence at most"),
             (num_heads, "heads"), (head_dim, "elements of one head"),
             (nil_allocator, "whether the allocator is null"),
             (kernels, "kernels that are offered: host or unavailable"))

struct Append {
  static constexpr std::string_view kName = "append";
  static constexpr std::string_view kDoc = "Writes a layer's position from host memory (ZF-44).";
  using Returns = Calls;
  std::int64_t layer = 0;
  std::int64_t seq_pos = 0;
  std::vector<float> k;
  std::vector<float> v;
};
KVO_DESCRIBE(Append, (layer, "layer, counted from 0"), (seq_pos, "position to write at, from 0"),
             (k, "keys"), (v, "values"))

struct AppendGpu {
  static constexpr std::string_view kName = "append_gpu";
  static constexpr std::string_view kDoc =
      "Writes a layer's next position from device memory with kernels (ZF-46).";
  using Returns = Calls;
  std::int64_t layer = 0;
  std::vector<float> k;
  std::vector<float> v;
};
KVO_DESCRIBE(AppendGpu, (layer, "layer, counted from 0"), (k, "keys"), (v, "values"))

struct Pointers {
  static constexpr std::string_view kName = "pointers";
  static constexpr std::string_view kDoc = "The buffers of a layer, and the length (ZF-49).";
  struct Returns {
    ShownPtr k;
    ShownPtr v;
    std::int64_t n = 0;
  };
  std::int64_t layer = 0;
};
KVO_DESCRIBE(Pointers, (layer, "layer, counted from 0"))
KVO_DESCRIBE(Pointers::Returns, (k, "keys"), (v, "values"), (n, "how many, or at most how many"))

struct CounterPtr {
  static constexpr std::string_view kName = "counter_ptr";
  static constexpr std::string_view kDoc = "The address of the counter (ZF-48).";
  struct Returns {
    ShownPtr ptr;
  };
};
KVO_DESCRIBE(CounterPtr)
KVO_DESCRIBE(CounterPtr::Returns, (ptr, "device address: buffer and offset; null or host"))

struct ReadCounter {
  static constexpr std::string_view kName = "read_counter";
  static constexpr std::string_view kDoc = "What the counter holds; null when it is freed (ZF-47).";
  struct Returns {
    Nullable<std::int64_t> n;
  };
};
KVO_DESCRIBE(ReadCounter)
KVO_DESCRIBE(ReadCounter::Returns, (n, "what the counter holds; null when it is freed"))

struct DevicePointerArrays {
  static constexpr std::string_view kName = "device_pointer_arrays";
  static constexpr std::string_view kDoc = "Copies all layers' pointers to the device (ZF-50).";
  struct Returns {
    std::vector<DeviceCall> calls;
    std::optional<ShownPtr> k = std::nullopt;
    std::optional<ShownPtr> v = std::nullopt;
    std::optional<std::vector<ShownPtr>> k_content = std::nullopt;
    std::optional<std::vector<ShownPtr>> v_content = std::nullopt;
  };
};
KVO_DESCRIBE(DevicePointerArrays)
KVO_DESCRIBE(DevicePointerArrays::Returns, (calls, "device calls in order, with their arguments"),
             (k, "keys"), (v, "values"), (k_content, "where each layer's keys lie on the device"),
             (v_content, "where each layer's values lie on the device"))

struct ReadBuffer {
  static constexpr std::string_view kName = "read_buffer";
  static constexpr std::string_view kDoc = "A layer's whole buffers, stale cells included (ZF-51).";
  struct Returns {
    static constexpr std::array<std::string_view, 2> kAxes{"position", "cell"};
    bool found = false;
    std::optional<Tensor> k = std::nullopt;
    std::optional<Tensor> v = std::nullopt;
  };
  std::int64_t layer = 0;
};
KVO_DESCRIBE(ReadBuffer, (layer, "layer, counted from 0"))
KVO_DESCRIBE(ReadBuffer::Returns, (found, "whether there was anything"), (k, "keys"), (v, "values"))

struct LiveBuffers {
  static constexpr std::string_view kName = "live_buffers";
  static constexpr std::string_view kDoc = "The numbers of the buffers not given back, ascending.";
  struct Returns {
    std::vector<std::int64_t> bufs;
  };
};
KVO_DESCRIBE(LiveBuffers)
KVO_DESCRIBE(LiveBuffers::Returns, (bufs, "device buffers that are alive, ascending"))

struct SyncDeviceCounter {
  static constexpr std::string_view kName = "sync_counter";
  static constexpr std::string_view kDoc = "Takes the length from the counter (ZF-48).";
  using Returns = Calls;
};
KVO_DESCRIBE(SyncDeviceCounter)

struct ResetDevice {
  static constexpr std::string_view kName = "reset";
  static constexpr std::string_view kDoc = "Length and counter 0; the cells stay (ZF-51).";
  using Returns = Calls;
};
KVO_DESCRIBE(ResetDevice)

struct Close {
  static constexpr std::string_view kName = "close";
  static constexpr std::string_view kDoc = "Frees everything (ZF-52).";
  using Returns = Calls;
};
KVO_DESCRIBE(Close)

struct InjectDevice {
  static constexpr std::string_view kName = "inject";
  static constexpr std::string_view kDoc =
      "The n-th such call from now fails; an absent one stays as it was, 0 takes it back.";
  using Returns = Nothing;
  std::optional<std::int64_t> alloc_fail_at = std::nullopt;
  std::optional<std::int64_t> free_fail_at = std::nullopt;
  std::optional<std::int64_t> memcpy_fail_at = std::nullopt;
  std::optional<std::int64_t> kernel_fail_at = std::nullopt;
};
KVO_DESCRIBE(InjectDevice, (alloc_fail_at, "which allocation from now on fails, counted from 1"),
             (free_fail_at, "which free from now on fails, counted from 1"),
             (memcpy_fail_at, "which copy from now on fails, counted from 1"),
             (kernel_fail_at, "which kernel launch from now on fails, counted from 1"))

/// The config of a case: repeats what its first operations say, for people; not used.
struct DeviceConfig {
  std::optional<std::int64_t> num_layers = std::nullopt;
  std::optional<std::int64_t> max_seq_len = std::nullopt;
  std::optional<std::int64_t> num_heads = std::nullopt;
  std::optional<std::int64_t> head_dim = std::nullopt;
  std::optional<Kernels> kernels = std::nullopt;
};
KVO_DESCRIBE(DeviceConfig, (num_layers, "layers"), (max_seq_len, "positions of a sequence at most"),
             (num_heads, "heads"), (head_dim, "elements of one head"),
             (kernels, "whether there are kernels"))

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
