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
  [[nodiscard]] std::byte* host_address(DevicePtr ptr, std::int64_t bytes, bool written) override;
  [[nodiscard]] Status queue(const Work& work, Stream stream);
  [[nodiscard]] Status carry_out(const Work& work);
  [[nodiscard]] Status copied(const Work& work);
  /// Runs a job that does not say what it touches. Errors  other:bad_pointer, too late to undo it.
  [[nodiscard]] Status looked_up(const Job& job);
  class LookedUp;

  std::map<std::uint64_t, std::vector<std::byte>> buffers_;  ///< by address
  std::uint64_t next_address_ = std::uint64_t{1} << 36U;
  StreamTable streams_;
  std::map<std::uint64_t, WorkGraph> graphs_;
  std::uint64_t next_graph_ = 1;
};

}  // namespace kvo
