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
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

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

/// What a stream carries out: a copy, a fill or a job.
struct Work {
  enum class Kind : std::uint8_t { kToDevice, kToHost, kCopy, kFill, kJob };
  Kind kind = Kind::kCopy;
  DevicePtr dst = {};
  DevicePtr src = {};
  std::int64_t bytes = 0;
  const std::byte* host_src = nullptr;  ///< of kToDevice
  std::byte* host_dst = nullptr;        ///< of kToHost
  std::byte value = {};                 ///< of kFill
  std::optional<Job> job = std::nullopt;
  std::int64_t threads = 0;  ///< of kJob: threads of the launch; 0: one an item

  /// Whether bytes of the device are written at `dst`, and read at `src`; a job has arguments.
  [[nodiscard]] bool writes() const { return kind != Kind::kToHost && kind != Kind::kJob; }
  [[nodiscard]] bool reads() const { return kind == Kind::kToHost || kind == Kind::kCopy; }
  /// Whether `live(ptr, bytes)` holds of all that it names.
  template <class Live>
  [[nodiscard]] bool inside(const Live& live) const {
    if (job) return job->points_to([&](DevicePtr ptr) { return live(ptr, std::int64_t{0}); });
    return (!writes() || live(dst, bytes)) && (!reads() || live(src, bytes));
  }
  /// "copy to the host"; of a job its own name.
  [[nodiscard]] std::string_view name() const;
};

/// A call about streams, events and graphs.
struct StreamCall {
  enum class Kind : std::uint8_t {
    kCreateStream,
    kDestroyStream,
    kCreateEvent,
    kDestroyEvent,
    kRecord,
    kWait,
    kSynchronizeStream,
    kSynchronizeEvent,
    kBeginCapture,
    kEndCapture,
    kReplay,
    kDestroyGraph,
  };
  Kind kind = Kind::kSynchronizeStream;
  Stream stream = {};
  Event event = {};
  Graph graph = {};
};

/// Memory, streams, events and kernels. Sizes are bytes. Users call the named functions; a device
/// implements the four virtual ones. The errors of queued work show when it is queued, in the
/// replay, or in the synchronize after it; beside those named: the device's own.
class Device {
 public:
  virtual ~Device() = default;

  /// Zeroed memory: what the recordings show of cells that were never written (ZF-62).
  /// Errors  whatever the device says, for instance other:alloc_failed.
  [[nodiscard]] virtual Result<DevicePtr> alloc(std::int64_t bytes) = 0;
  /// Releases what alloc returned; queued work must not use it any more.
  /// Errors  other:bad_pointer: it is not live.
  [[nodiscard]] virtual Status free(DevicePtr ptr) = 0;
  /// Queues work. Errors  as of the functions that make it.
  [[nodiscard]] virtual Status queue(const Work& work, Stream stream) = 0;
  /// Carries out a call. Returns the number of what it makes; of other calls it means nothing.
  /// Errors  as of the functions that make it.
  [[nodiscard]] virtual Result<std::uint64_t> control(const StreamCall& call) = 0;

  /// Queues a copy to the device, from it, or on it. The caller does not touch the host memory
  /// until the stream is synchronized. Errors  other:bad_pointer: the device side is not inside
  /// live memory.
  [[nodiscard]] Status to_device_async(DevicePtr dst, std::span<const std::byte> src,
                                       Stream stream) {
    return queue({.kind = Work::Kind::kToDevice,
                  .dst = dst,
                  .bytes = std::ssize(src),
                  .host_src = src.data()},
                 stream);
  }
  [[nodiscard]] Status to_host_async(std::span<std::byte> dst, DevicePtr src, Stream stream) {
    return queue(
        {.kind = Work::Kind::kToHost, .src = src, .bytes = std::ssize(dst), .host_dst = dst.data()},
        stream);
  }
  [[nodiscard]] Status copy_async(DevicePtr dst, DevicePtr src, std::int64_t bytes, Stream stream) {
    return queue({.kind = Work::Kind::kCopy, .dst = dst, .src = src, .bytes = bytes}, stream);
  }
  /// Queues the writing of one value into every byte. Errors as those of copies.
  [[nodiscard]] Status fill_async(DevicePtr dst, std::byte value, std::int64_t bytes,
                                  Stream stream) {
    return queue({.kind = Work::Kind::kFill, .dst = dst, .bytes = bytes, .value = value}, stream);
  }
  /// Queues a kernel.
  /// Errors  kNotSupported "kernels" without a kernel library (nothing is written);
  ///         other:bad_pointer: it would leave live memory. A device that does not run it at once
  ///         checks the arguments alone.
  [[nodiscard]] Status launch(const Job& job, Stream stream) {
    return queue({.kind = Work::Kind::kJob, .job = job}, stream);
  }

  /// Errors of these: other:bad_stream, other:bad_event, other:bad_graph: there is none of that
  /// number; other:capturing: not while a capture is on.
  [[nodiscard]] Result<Stream> create_stream() { return make<Stream>(Call::kCreateStream); }
  /// Waits for the stream's work; the default stream stays.
  [[nodiscard]] Status destroy(Stream stream) { return done(Call::kDestroyStream, stream); }
  [[nodiscard]] Result<Event> create_event() { return make<Event>(Call::kCreateEvent); }
  [[nodiscard]] Status destroy(Event event) { return done(Call::kDestroyEvent, {}, event); }
  /// Puts the event after what is queued on the stream; an earlier place is forgotten.
  [[nodiscard]] Status record(Event event, Stream stream) {
    return done(Call::kRecord, stream, event);
  }
  /// What is queued on the stream from now on waits for the event; one never recorded is past.
  [[nodiscard]] Status wait(Stream stream, Event event) { return done(Call::kWait, stream, event); }
  /// Returns when all that is queued on the stream, or before the event, has taken effect. Not for
  /// a stream or event that is captured (other:capturing).
  [[nodiscard]] Status synchronize(Stream stream) { return done(Call::kSynchronizeStream, stream); }
  [[nodiscard]] Status synchronize(Event event) { return done(Call::kSynchronizeEvent, {}, event); }

  /// From now on what is queued on the stream is not carried out but captured. A stream that waits
  /// for an event of the capture is captured from there on; before the end the first stream must
  /// wait for it in turn. One capture at a time; alloc and free happen at once and are no part of
  /// it. Host memory of captured copies is used by every replay.
  /// Errors  other:capturing: one is on.
  [[nodiscard]] Status begin_capture(Stream stream) { return done(Call::kBeginCapture, stream); }
  /// Ends the capture that began on the stream, in any case. Its events are as if never recorded.
  /// Errors  other:bad_capture: none began there, or a stream was not waited for.
  [[nodiscard]] Result<Graph> end_capture(Stream stream) {
    return make<Graph>(Call::kEndCapture, stream);
  }
  /// Queues what was captured: after what is queued on the stream and after earlier replays of the
  /// graph. It uses the addresses, sizes and pointers of the capture.
  [[nodiscard]] Status replay(Graph graph, Stream stream) {
    return done(Call::kReplay, stream, {}, graph);
  }
  /// What is queued of it is still carried out.
  [[nodiscard]] Status destroy(Graph graph) { return done(Call::kDestroyGraph, {}, {}, graph); }

  // The same on the default stream; copies to and from the host are done when they return.
  [[nodiscard]] Status to_device(DevicePtr dst, std::span<const std::byte> src);
  [[nodiscard]] Status to_host(std::span<std::byte> dst, DevicePtr src);
  [[nodiscard]] Status copy(DevicePtr dst, DevicePtr src, std::int64_t bytes) {
    return copy_async(dst, src, bytes, {});
  }
  [[nodiscard]] Status run(const Job& job) { return launch(job, {}); }

 protected:
  using Call = StreamCall::Kind;

 private:
  template <class Made>
  Result<Made> make(Call kind, Stream stream = {}) {
    const auto made = control({.kind = kind, .stream = stream});
    if (!made) return made.error();
    return Made{*made};
  }
  Status done(Call kind, Stream stream, Event event = {}, Graph graph = {});
};

/// Passes every call on to the device below; a decorator overrides what it changes.
class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::shared_ptr<Device> below) : below_(std::move(below)) {}
  [[nodiscard]] Result<DevicePtr> alloc(std::int64_t bytes) override {
    return below_->alloc(bytes);
  }
  [[nodiscard]] Status free(DevicePtr ptr) override { return below_->free(ptr); }
  [[nodiscard]] Status queue(const Work& work, Stream stream) override {
    return below_->queue(work, stream);
  }
  [[nodiscard]] Result<std::uint64_t> control(const StreamCall& call) override {
    return below_->control(call);
  }

 protected:
  std::shared_ptr<Device> below_;
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
  /// Without memory, until allocate().
  explicit DeviceStorage(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  /// Requires that it has no memory. Errors  as of make.
  [[nodiscard]] Status allocate(std::int64_t count, std::int64_t cell_bytes);
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
