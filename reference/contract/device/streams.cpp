#include "reference/contract/device/streams.hpp"

#include <utility>

namespace kvo {
namespace {

Error capturing() {
  return fail_other("capturing");
}

}  // namespace

void Capture::add(const Work& work, Stream stream) {
  Tail& last = tail(stream);
  const std::size_t node = work_.size();
  work_.push_back({work, last.lane, {last.nodes.begin(), last.nodes.end()}});
  last.nodes = {node};
}

void Capture::record(Event event, Stream stream) {
  events_[event.id] = tail(stream).nodes;
}

void Capture::wait(Stream stream, Event event) {
  const Nodes& before = events_.at(event.id);
  tail(stream).nodes.insert(before.begin(), before.end());
}

bool Capture::joined() const {
  std::vector<bool> waited_for(work_.size(), false);
  for (const std::size_t node : tails_.at(origin_.id).nodes) waited_for[node] = true;
  for (std::size_t node = work_.size(); node-- > 0;) {
    if (!waited_for[node]) return false;
    for (const std::size_t before : work_[node].after) waited_for[before] = true;
  }
  return true;
}

Status StreamTable::known(Stream stream) const {
  return streams_.contains(stream.id) ? Status() : fail_other("bad_stream");
}

bool StreamTable::recorded(Event event) const {
  return recorded_.contains(event.id) || (capture_ && capture_->has(event));
}

// What has no number, and what a capture holds.
Status StreamTable::check(const StreamCall& call) const {
  using Kind = StreamCall::Kind;
  const Kind kind = call.kind;
  const bool event = kind == Kind::kDestroyEvent || kind == Kind::kRecord || kind == Kind::kWait ||
                     kind == Kind::kSynchronizeEvent;
  const bool graph = kind == Kind::kReplay || kind == Kind::kDestroyGraph;
  if (event && !events_.contains(call.event.id)) return fail_other("bad_event");
  if (graph && !graphs_.contains(call.graph.id)) return fail_other("bad_graph");
  if (kind == Kind::kDestroyStream && call.stream == Stream()) return fail_other("bad_stream");
  if (Status found = known(call.stream); !found) return found;
  const bool ends =
      kind == Kind::kDestroyStream || kind == Kind::kSynchronizeStream || kind == Kind::kReplay;
  const bool ends_event = kind == Kind::kDestroyEvent || kind == Kind::kSynchronizeEvent;
  if (capture_ &&
      ((ends && capture_->has(call.stream)) || (ends_event && capture_->has(call.event))))
    return capturing();
  return {};
}

Result<std::uint64_t> StreamTable::control(const StreamCall& call) {
  using Kind = StreamCall::Kind;
  if (Status good = check(call); !good) return good.error();
  switch (call.kind) {
    case Kind::kCreateStream:
      streams_.insert(next_id_);
      return next_id_++;
    case Kind::kDestroyStream:
      streams_.erase(call.stream.id);
      break;
    case Kind::kCreateEvent:
      events_.insert(next_id_);
      return next_id_++;
    case Kind::kDestroyEvent:
      events_.erase(call.event.id);
      recorded_.erase(call.event.id);
      break;
    case Kind::kRecord:
      return record(call.event, call.stream);
    case Kind::kWait:
      return wait(call.stream, call.event);
    case Kind::kBeginCapture:
      if (capture_) return capturing();
      capture_.emplace(call.stream);
      break;
    case Kind::kEndCapture:
      if (!capture_ || capture_->origin() != call.stream) return fail_other("bad_capture");
      return end_capture();
    case Kind::kDestroyGraph:
      graphs_.erase(call.graph.id);
      break;
    case Kind::kSynchronizeStream:
    case Kind::kSynchronizeEvent:
    case Kind::kReplay:
      break;
  }
  return std::uint64_t{0};
}

Result<std::uint64_t> StreamTable::end_capture() {
  const Capture ended = *std::exchange(capture_, std::nullopt);
  if (!ended.joined()) return fail_other("bad_capture");
  graphs_.emplace(next_graph_, ended.work());
  return next_graph_++;
}

Result<bool> StreamTable::captured(const Work& work, Stream stream) {
  if (Status found = known(stream); !found) return found.error();
  if (!capture_ || !capture_->has(stream)) return false;
  capture_->add(work, stream);
  return true;
}

std::uint64_t StreamTable::record(Event event, Stream stream) {
  if (capture_ && capture_->has(stream)) {
    recorded_.erase(event.id);
    capture_->record(event, stream);
    return 1;
  }
  if (capture_) capture_->forget(event);
  recorded_.insert(event.id);
  return 0;
}

Result<std::uint64_t> StreamTable::wait(Stream stream, Event event) {
  const bool inside = capture_ && capture_->has(event);
  if (inside) capture_->wait(stream, event);
  if (inside || !capture_ || !capture_->has(stream)) return std::uint64_t{inside};
  if (recorded_.contains(event.id)) return capturing();
  return std::uint64_t{1};  // never recorded: past
}

}  // namespace kvo
