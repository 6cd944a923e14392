// reference/contract/device/streams.hpp: what devices answer alike about streams, events and
// captures.
//
// Words    node      work of a graph, with the nodes that must have taken effect before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "reference/contract/device/device.hpp"

namespace kvo {

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
    Nodes nodes = {};  ///< what is queued next comes after these
  };
  Tail& tail(Stream stream) {
    return tails_.try_emplace(stream.id, Tail{tails_.size()}).first->second;
  }

  Stream origin_;
  WorkGraph work_;
  std::map<std::uint64_t, Tail> tails_;
  std::map<std::uint64_t, Nodes> events_;
};

/// The streams, events and graphs that there are, and the capture that is on: the checks and the
/// bookkeeping of control(), which all devices share.
class StreamTable {
 public:
  /// Returns the number of what the call makes. Of record and wait: 1 where a capture took the
  /// call, else 0.
  /// Errors  as of Device; other:capturing, too, where a captured stream would wait for work
  ///         outside.
  [[nodiscard]] Result<std::uint64_t> control(const StreamCall& call);
  /// Whether the work was part of a capture, which has taken it. Errors  other:bad_stream.
  [[nodiscard]] Result<bool> captured(const Work& work, Stream stream);
  /// Errors  other:bad_stream.
  [[nodiscard]] Status known(Stream stream) const;
  /// Whether the event was recorded, in the capture that is on or outside; else it is past.
  [[nodiscard]] bool recorded(Event event) const;
  [[nodiscard]] const std::optional<Capture>& capture() const { return capture_; }
  /// Requires that the graph is there.
  [[nodiscard]] const WorkGraph& work_of(Graph graph) const { return graphs_.at(graph.id); }

 private:
  using Number = Result<std::uint64_t>;
  [[nodiscard]] Status check(const StreamCall& call) const;
  [[nodiscard]] Number end_capture();
  [[nodiscard]] std::uint64_t record(Event event, Stream stream);
  [[nodiscard]] Number wait(Stream stream, Event event);

  std::set<std::uint64_t> streams_{0};
  std::set<std::uint64_t> events_;
  std::set<std::uint64_t> recorded_;  ///< events that were recorded outside of captures
  std::map<std::uint64_t, WorkGraph> graphs_;
  std::optional<Capture> capture_;
  std::uint64_t next_id_ = 1;  ///< of streams and events
  std::uint64_t next_graph_ = 1;
};

}  // namespace kvo
