// reference/contract/device/streams.hpp: what devices answer alike about streams, events and
// captures.
//
// Words    work      what was asked of a stream, as a value: a copy, a fill or a job.
//          node      work of a graph, with the nodes that must have taken effect before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "reference/contract/device/device.hpp"

namespace kvo {

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

  static Work to_device(DevicePtr dst, std::span<const std::byte> src);
  static Work to_host(std::span<std::byte> dst, DevicePtr src);
  static Work copy(DevicePtr dst, DevicePtr src, std::int64_t bytes);
  static Work fill(DevicePtr dst, std::byte value, std::int64_t bytes);
  static Work launch(const Job& job, std::int64_t threads = 0);
  /// "copy to the host"; of a job its own name.
  [[nodiscard]] std::string_view name() const;
};

struct WorkNode {
  Work work;
  std::size_t lane = 0;  ///< streams of the capture, numbered as they came; 0: where it began
  std::vector<std::size_t> after = {};  ///< nodes before this one
};
/// In the order in which it was queued, which keeps every `after`.
using WorkGraph = std::vector<WorkNode>;

/// What is captured, from its beginning on one stream.
class Capture {
 public:
  explicit Capture(Stream origin) : origin_(origin) { (void)tail(origin); }

  [[nodiscard]] Stream origin() const { return origin_; }
  [[nodiscard]] bool has(Stream stream) const { return tails_.contains(stream.id); }
  [[nodiscard]] bool has(Event event) const { return events_.contains(event.id); }

  /// These require that the stream, and of wait the event, belongs to the capture.
  void add(const Work& work, Stream stream);
  void record(Event event, Stream stream);
  /// The stream belongs to the capture from now on.
  void wait(Stream stream, Event event);
  /// The event no longer belongs to the capture.
  void forget(Event event) { events_.erase(event.id); }

  /// Whether the first stream has waited for all that was captured.
  [[nodiscard]] bool joined() const;
  [[nodiscard]] const WorkGraph& work() const { return work_; }

 private:
  using Nodes = std::set<std::size_t>;
  struct Tail {
    std::size_t lane = 0;
    Nodes nodes = {};  ///< what is queued next comes behind these
  };
  Tail& tail(Stream stream) {
    return tails_.try_emplace(stream.id, Tail{tails_.size()}).first->second;
  }

  Stream origin_;
  WorkGraph work_;
  std::map<std::uint64_t, Tail> tails_;
  std::map<std::uint64_t, Nodes> events_;
};

/// The streams and events that there are, and the capture that is on.
class StreamTable {
 public:
  [[nodiscard]] Stream add_stream();
  [[nodiscard]] Event add_event();
  /// Errors  other:bad_stream, other:bad_event.
  [[nodiscard]] Status known(Stream stream) const;
  [[nodiscard]] Status known(Event event) const;
  /// Errors  those, and other:capturing: it belongs to a capture; the default stream stays.
  [[nodiscard]] Status remove(Stream stream);
  [[nodiscard]] Status remove(Event event);
  /// Whether it can be waited for. Errors as of remove, but the default stream can.
  [[nodiscard]] Status waitable(Stream stream) const;
  [[nodiscard]] Status waitable(Event event) const;

  /// Errors  other:bad_stream, other:capturing.
  [[nodiscard]] Status begin_capture(Stream stream);
  /// Errors  other:bad_stream, other:bad_capture.
  [[nodiscard]] Result<WorkGraph> end_capture(Stream stream);
  /// Whether the call was part of a capture, which has taken it.
  /// Errors  other:bad_stream, other:bad_event; other:capturing: a captured stream would wait for
  ///         work outside.
  [[nodiscard]] Result<bool> captured(const Work& work, Stream stream);
  [[nodiscard]] Result<bool> captured_record(Event event, Stream stream);
  [[nodiscard]] Result<bool> captured_wait(Stream stream, Event event);
  /// Whether it was recorded, in the capture that is on or outside; else it is past.
  [[nodiscard]] bool stands(Event event) const;
  [[nodiscard]] const std::optional<Capture>& capture() const { return capture_; }

 private:
  std::set<std::uint64_t> streams_{0};
  std::set<std::uint64_t> events_;
  std::set<std::uint64_t> recorded_;  ///< events that were recorded outside of captures
  std::optional<Capture> capture_;
  std::uint64_t next_id_ = 1;
};

}  // namespace kvo
