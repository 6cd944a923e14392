// cuda/device/cuda_device.hpp: a card behind the interface of a device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "reference/contract/device/device.hpp"
#include "reference/contract/device/streams.hpp"

struct CUstream_st;     // NOLINT: the runtime's names
struct CUevent_st;      // NOLINT
struct CUgraphExec_st;  // NOLINT

namespace kvo::cuda {

/// Everything goes to the CUDA runtime. No stream waits for another one unless an event says so,
/// the default stream included. A job runs as the kernel of its row in cuda/jobs/launchers.cu.
/// Errors beside those of Device: other:alloc_failed; kNotSupported: a job without a kernel, or a
/// kernel that is not compiled for the card; other:device_lost with the runtime's words: all else.
class CudaDevice final : public Device {
 public:
  /// The first card. Errors  kNotSupported: there is none, or it is older than the kernels.
  static Result<std::shared_ptr<CudaDevice>> open();
  CudaDevice() = default;
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  [[nodiscard]] Result<DevicePtr> alloc(std::int64_t bytes) override;
  [[nodiscard]] Status free(DevicePtr ptr) override;
  [[nodiscard]] Status to_device_async(DevicePtr dst, std::span<const std::byte> src,
                                       Stream stream) override;
  [[nodiscard]] Status to_host_async(std::span<std::byte> dst, DevicePtr src,
                                     Stream stream) override;
  [[nodiscard]] Status copy_async(DevicePtr dst, DevicePtr src, std::int64_t bytes,
                                  Stream stream) override;
  [[nodiscard]] Status fill_async(DevicePtr dst, std::byte value, std::int64_t bytes,
                                  Stream stream) override;
  [[nodiscard]] Status launch(const Job& job, Stream stream) override;
  [[nodiscard]] Result<Stream> create_stream() override;
  [[nodiscard]] Status destroy(Stream stream) override;
  [[nodiscard]] Result<Event> create_event() override;
  [[nodiscard]] Status destroy(Event event) override;
  [[nodiscard]] Status record(Event event, Stream stream) override;
  [[nodiscard]] Status wait(Stream stream, Event event) override;
  [[nodiscard]] Status synchronize(Stream stream) override;
  [[nodiscard]] Status synchronize(Event event) override;
  [[nodiscard]] Status begin_capture(Stream stream) override;
  [[nodiscard]] Result<Graph> end_capture(Stream stream) override;
  [[nodiscard]] Status replay(Graph graph, Stream stream) override;
  [[nodiscard]] Status destroy(Graph graph) override;

  /// Buffers that were allocated and not given back.
  [[nodiscard]] std::size_t live() const { return buffers_.size(); }

 private:
  [[nodiscard]] Status prepare();
  [[nodiscard]] bool inside(DevicePtr ptr, std::int64_t bytes) const;
  /// The checks of all queued work; a capture is told of it.
  [[nodiscard]] Status begin(const Work& work, Stream stream);

  std::map<std::uint64_t, std::int64_t> buffers_;  ///< bytes, by address
  StreamTable table_;
  std::map<std::uint64_t, CUstream_st*> streams_;
  std::map<std::uint64_t, CUevent_st*> events_;
  std::map<std::uint64_t, CUgraphExec_st*> graphs_;
  std::uint64_t next_graph_ = 1;
  CUstream_st* zeroing_ = nullptr;  ///< what alloc uses: never captured
};

}  // namespace kvo::cuda
