// reference/provider/device_operations.hpp: the operations of `provider.device`.
#pragma once

#include <array>
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

/// A subject whose caches come from `make` and lie in the memory of `make_memory`.
[[nodiscard]] Subject make_device_subject(std::string variant, std::string doc, MakeDevice make,
                                          OpenDevice make_memory);

}  // namespace kvo::provider

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_DEVICE_OPERATIONS)
}  // namespace kvo
