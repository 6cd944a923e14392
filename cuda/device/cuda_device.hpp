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
  [[nodiscard]] Status queue(const Work& work, Stream stream) override;
  [[nodiscard]] Result<std::uint64_t> control(const StreamCall& call) override;

 private:
  [[nodiscard]] Status prepare();
  [[nodiscard]] bool inside(DevicePtr ptr, std::int64_t bytes) const;
  [[nodiscard]] Status carry_out(const StreamCall& call, std::uint64_t number);
  /// Ends a capture that the table has ended. Graph 0: the runtime's graph is dropped.
  [[nodiscard]] Status end_capture(Stream stream, std::uint64_t graph);

  std::map<std::uint64_t, std::int64_t> buffers_;  ///< bytes, by address
  StreamTable table_;
  std::map<std::uint64_t, CUstream_st*> streams_;
  std::map<std::uint64_t, CUevent_st*> events_;
  std::map<std::uint64_t, CUgraphExec_st*> graphs_;
  CUstream_st* zeroing_ = nullptr;  ///< what alloc uses: never captured
};

}  // namespace kvo::cuda
