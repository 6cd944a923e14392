// reference/contract/device/device.hpp: a device as the caches see it.
//
// A cache that keeps rows on a device allocates, copies and launches kernels through this interface
// only and never follows an address. Errors leave the device as it was.
//
// Words    counter   an int32 in device memory that kernels read their position from.
//          stream    a queue: what is queued on one takes effect in order, what is queued on two in
//                    any order that events allow. The default stream is always there.
//          event     a place in a stream; another stream can wait until work has come that far.
//          job       a kernel's work (job.hpp).
//          graph     queued work that was written down instead of being carried out (captured), to
//                    be carried out any number of times (replayed).
// Source   rules ZF-42 to ZF-52 (allocator), ZF-47 and ZF-67 (kernels).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "reference/contract/device/job.hpp"
#include "reference/contract/values/result.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo {

struct Stream {
  std::uint64_t id = 0;  ///< 0: the default stream
  friend bool operator==(const Stream&, const Stream&) = default;
};
struct Event {
  std::uint64_t id = 0;
  friend bool operator==(const Event&, const Event&) = default;
};

struct Graph {
  std::uint64_t id = 0;
  friend bool operator==(const Graph&, const Graph&) = default;
};

/// Memory, streams, events and kernels. Sizes are bytes. The errors of queued work show when it is
/// queued, in the replay, or in the synchronize behind it; beside those named: the device's own.
class Device {
 public:
  virtual ~Device() = default;

  /// Zeroed memory: what the recordings show of cells that nobody wrote (ZF-62).
  /// Errors  whatever the device says, for instance other:alloc_failed.
  [[nodiscard]] virtual Result<DevicePtr> alloc(std::int64_t bytes) = 0;
  /// Gives back what alloc returned; nothing queued may use it any more.
  /// Errors  other:bad_pointer: it is not live.
  [[nodiscard]] virtual Status free(DevicePtr ptr) = 0;

  /// Queues a copy to the device, from it, or on it. Host memory stays untouched by the caller
  /// until the stream is synchronized. Errors  other:bad_pointer: the device side is not inside
  /// live memory.
  [[nodiscard]] virtual Status to_device_async(DevicePtr dst, std::span<const std::byte> src,
                                               Stream stream) = 0;
  [[nodiscard]] virtual Status to_host_async(std::span<std::byte> dst, DevicePtr src,
                                             Stream stream) = 0;
  [[nodiscard]] virtual Status copy_async(DevicePtr dst, DevicePtr src, std::int64_t bytes,
                                          Stream stream) = 0;
  /// Queues the writing of one value into every byte. Errors as those of copies.
  [[nodiscard]] virtual Status fill_async(DevicePtr dst, std::byte value, std::int64_t bytes,
                                          Stream stream) = 0;
  /// Queues a kernel.
  /// Errors  kNotSupported "kernels" without a kernel library (nothing is written);
  ///         other:bad_pointer: it would leave live memory. Of that a device that does not run it
  ///         at once sees the arguments that lie outside.
  [[nodiscard]] virtual Status launch(const Job& job, Stream stream) = 0;

  /// Errors of these: other:bad_stream, other:bad_event, other:bad_graph: there is none of that
  /// number; other:capturing: not while a capture is on.
  [[nodiscard]] virtual Result<Stream> create_stream() = 0;
  /// Waits for the stream's work; the default stream stays.
  [[nodiscard]] virtual Status destroy(Stream stream) = 0;
  [[nodiscard]] virtual Result<Event> create_event() = 0;
  [[nodiscard]] virtual Status destroy(Event event) = 0;
  /// Puts the event behind what is queued on the stream; an earlier place is forgotten.
  [[nodiscard]] virtual Status record(Event event, Stream stream) = 0;
  /// What is queued on the stream from now on waits for the event; one never recorded is past.
  [[nodiscard]] virtual Status wait(Stream stream, Event event) = 0;
  /// Returns when all that is queued on the stream has taken effect, or what the event stands
  /// behind. Not for a stream or event that is captured (other:capturing).
  [[nodiscard]] virtual Status synchronize(Stream stream) = 0;
  [[nodiscard]] virtual Status synchronize(Event event) = 0;

  /// From now on what is queued on the stream is not carried out but captured. A stream that waits
  /// for an event of the capture is captured from there on; before the end the first stream must
  /// wait for it in turn. One capture at a time; alloc and free happen at once and are no part of
  /// it. Host memory of captured copies is used by every replay.
  /// Errors  other:capturing: one is on.
  [[nodiscard]] virtual Status begin_capture(Stream stream) = 0;
  /// Ends the capture that began on the stream, in any case. Its events are as if never recorded.
  /// Errors  other:bad_capture: none began there, or a stream was not waited for.
  [[nodiscard]] virtual Result<Graph> end_capture(Stream stream) = 0;
  /// Queues what was captured: behind what is queued on the stream and behind earlier replays of
  /// the graph. It uses the addresses, sizes and pointers of the capture.
  [[nodiscard]] virtual Status replay(Graph graph, Stream stream) = 0;
  /// What is queued of it is still carried out.
  [[nodiscard]] virtual Status destroy(Graph graph) = 0;

  // The same on the default stream; copies to and from the host are done when they return.
  [[nodiscard]] Status to_device(DevicePtr dst, std::span<const std::byte> src);
  [[nodiscard]] Status to_host(std::span<std::byte> dst, DevicePtr src);
  [[nodiscard]] Status copy(DevicePtr dst, DevicePtr src, std::int64_t bytes) {
    return copy_async(dst, src, bytes, {});
  }
  [[nodiscard]] Status run(const Job& job) { return launch(job, {}); }
};

/// What an int32 in device memory holds, and writing it; errors are those of the copies.
[[nodiscard]] Result<std::int64_t> read_counter(Device& device, DevicePtr counter);
[[nodiscard]] Status write_counter(Device& device, DevicePtr counter, std::int64_t value);

/// Makes the device of one case.
/// Errors  kNotSupported: there is none on this machine.
using OpenDevice = std::function<Result<std::shared_ptr<Device>>()>;

/// Device memory that frees itself, and what lies behind views on f32 cells of it.
class DeviceStorage final : public Storage {
 public:
  /// Allocates count * cell_bytes bytes; counts are not negative.
  /// Errors  kPrecondition: the product overflows; and those of Device::alloc.
  static Result<std::shared_ptr<DeviceStorage>> make(std::shared_ptr<Device> device,
                                                     std::int64_t count, std::int64_t cell_bytes);
  explicit DeviceStorage(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~DeviceStorage() override { release(); }

  /// Waits for the default stream and gives the memory back; views on it dangle from now on. Errors
  /// are dropped.
  void release();
  [[nodiscard]] DevicePtr ptr() const { return ptr_; }

  /// Throw ErrorThrown when the device fails: a view cannot answer an error.
  void read(std::int64_t offset, std::span<float> out) const override;
  void write(std::int64_t offset, float value) override;

 private:
  std::shared_ptr<Device> device_;
  DevicePtr ptr_;
};

}  // namespace kvo
