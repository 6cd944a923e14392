// reference/contract/device/host_device.hpp: host memory behind the interface of a device.
#pragma once

#include <map>
#include <vector>

#include "reference/contract/device/device.hpp"
#include "reference/contract/device/streams.hpp"

namespace kvo {

/// Zeroed buffers in host memory with addresses of their own. Everything takes effect at once, on
/// the calling thread, the items of a job from first to last: one of the orders that any streams
/// and events allow. A replay takes effect up to its first error.
class HostDevice final : public Device, private JobMemory {
 public:
  /// A fresh device, as OpenDevice wants it.
  static Result<std::shared_ptr<Device>> make() { return std::make_shared<HostDevice>(); }

  [[nodiscard]] Result<DevicePtr> alloc(std::int64_t bytes) override;
  [[nodiscard]] Status free(DevicePtr ptr) override;
  [[nodiscard]] Status queue(const Work& work, Stream stream) override;
  [[nodiscard]] Result<std::uint64_t> control(const StreamCall& call) override;

  /// Buffers that were allocated and not given back.
  [[nodiscard]] std::size_t live() const { return buffers_.size(); }

 private:
  [[nodiscard]] std::byte* host_address(DevicePtr ptr, std::int64_t bytes, bool written) override;
  [[nodiscard]] Status carry_out(const Work& work);
  [[nodiscard]] Status copied(const Work& work);
  /// Runs a job that does not say what it touches. Errors  other:bad_pointer, too late to undo it.
  [[nodiscard]] Status looked_up(const Job& job);
  class LookedUp;

  std::map<std::uint64_t, std::vector<std::byte>> buffers_;  ///< by address
  std::uint64_t next_address_ = std::uint64_t{1} << 36U;
  StreamTable streams_;
};

}  // namespace kvo
