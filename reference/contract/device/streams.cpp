#include "reference/contract/device/streams.hpp"

#include <utility>

#include "reference/contract/values/check.hpp"

namespace kvo {
namespace {

Error capturing() {
  return fail_other("capturing");
}

}  // namespace

Work Work::to_device(DevicePtr dst, std::span<const std::byte> src) {
  return {.kind = Kind::kToDevice,
          .dst = dst,
          .bytes = static_cast<std::int64_t>(src.size()),
          .host_src = src.data()};
}

Work Work::to_host(std::span<std::byte> dst, DevicePtr src) {
  return {.kind = Kind::kToHost,
          .src = src,
          .bytes = static_cast<std::int64_t>(dst.size()),
          .host_dst = dst.data()};
}

Work Work::copy(DevicePtr dst, DevicePtr src, std::int64_t bytes) {
  return {.kind = Kind::kCopy, .dst = dst, .src = src, .bytes = bytes};
}

Work Work::fill(DevicePtr dst, std::byte value, std::int64_t bytes) {
  return {.kind = Kind::kFill, .dst = dst, .bytes = bytes, .value = value};
}

Work Work::launch(const Job& job, std::int64_t threads) {
  return {.kind = Kind::kJob, .job = job, .threads = threads};
}

std::string_view Work::name() const {
  switch (kind) {
    case Kind::kToDevice:
      return "copy to the device";
    case Kind::kToHost:
      return "copy to the host";
    case Kind::kCopy:
      return "copy";
    case Kind::kFill:
      return "fill";
    case Kind::kJob:
      return job->type().name;
  }
  KVO_CHECK(false);
}

void Capture::add(const Work& work, Stream stream) {
  Tail& behind = tail(stream);
  const std::size_t node = work_.size();
  work_.push_back({work, behind.lane, {behind.nodes.begin(), behind.nodes.end()}});
  behind.nodes = {node};
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

Stream StreamTable::add_stream() {
  streams_.insert(next_id_);
  return {next_id_++};
}

Event StreamTable::add_event() {
  events_.insert(next_id_);
  return {next_id_++};
}

Status StreamTable::known(Stream stream) const {
  return streams_.contains(stream.id) ? Status() : fail_other("bad_stream");
}

Status StreamTable::known(Event event) const {
  return events_.contains(event.id) ? Status() : fail_other("bad_event");
}

Status StreamTable::waitable(Stream stream) const {
  if (Status found = known(stream); !found) return found;
  return capture_ && capture_->has(stream) ? Status(capturing()) : Status();
}

Status StreamTable::waitable(Event event) const {
  if (Status found = known(event); !found) return found;
  return capture_ && capture_->has(event) ? Status(capturing()) : Status();
}

Status StreamTable::remove(Stream stream) {
  if (stream == Stream{}) return fail_other("bad_stream");
  if (Status free = waitable(stream); !free) return free;
  streams_.erase(stream.id);
  return {};
}

Status StreamTable::remove(Event event) {
  if (Status free = waitable(event); !free) return free;
  events_.erase(event.id);
  recorded_.erase(event.id);
  return {};
}

bool StreamTable::stands(Event event) const {
  return recorded_.contains(event.id) || (capture_ && capture_->has(event));
}

Status StreamTable::begin_capture(Stream stream) {
  if (Status found = known(stream); !found) return found;
  if (capture_) return capturing();
  capture_.emplace(stream);
  return {};
}

Result<WorkGraph> StreamTable::end_capture(Stream stream) {
  if (Status found = known(stream); !found) return found.error();
  if (!capture_ || capture_->origin() != stream) return fail_other("bad_capture");
  const Capture ended = *std::exchange(capture_, std::nullopt);
  if (!ended.joined()) return fail_other("bad_capture");
  return ended.work();
}

Result<bool> StreamTable::captured(const Work& work, Stream stream) {
  if (Status found = known(stream); !found) return found.error();
  if (!capture_ || !capture_->has(stream)) return false;
  capture_->add(work, stream);
  return true;
}

Result<bool> StreamTable::captured_record(Event event, Stream stream) {
  if (Status found = known(event); !found) return found.error();
  if (Status found = known(stream); !found) return found.error();
  if (capture_ && capture_->has(stream)) {
    recorded_.erase(event.id);
    capture_->record(event, stream);
    return true;
  }
  if (capture_) capture_->forget(event);
  recorded_.insert(event.id);
  return false;
}

Result<bool> StreamTable::captured_wait(Stream stream, Event event) {
  if (Status found = known(event); !found) return found.error();
  if (Status found = known(stream); !found) return found.error();
  if (!capture_) return false;
  if (capture_->has(event)) {
    capture_->wait(stream, event);
    return true;
  }
  if (!capture_->has(stream)) return false;
  if (recorded_.contains(event.id)) return capturing();
  return true;  // never recorded: past
}

}  // namespace kvo
