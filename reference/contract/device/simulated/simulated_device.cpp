#include "reference/contract/device/simulated/simulated_device.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "reference/contract/subject/probe.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo {
namespace {

using Kind = Work::Kind;

}  // namespace

SimulatedDevice::SimulatedDevice(SimulatedOptions options)
    : schedule_(std::move(options.schedule)),
      capacity_(options.capacity),
      fail_alloc_(options.fail_alloc),
      lose_at_(options.lose_at),
      memory_(history_, reports_, options.fresh) {}

void SimulatedDevice::Point::join(const Point& other) {
  clock.join(other.clock);
  for (const WorkId id : other.work)
    if (std::ranges::find(work, id) == work.end()) work.push_back(id);
}

Status SimulatedDevice::begin_call() {
  ++calls_;
  if (lose_at_ != 0 && calls_ >= lose_at_) lost_ = true;
  return lost_ ? Status(fail_other("device_lost")) : Status();
}

Result<DevicePtr> SimulatedDevice::alloc(std::int64_t bytes) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun.error();
  ++counts_.allocs;
  const bool fits = bytes >= 0 && bytes <= capacity_ - memory_.live_bytes();
  if (!fits || counts_.allocs == fail_alloc_) return fail_other("alloc_failed");
  return memory_.alloc(bytes);
}

Status SimulatedDevice::free(DevicePtr ptr) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  return memory_.free(ptr, now_);
}

// ---- queueing ----

Status SimulatedDevice::to_device_async(DevicePtr dst, std::span<const std::byte> src,
                                        Stream stream) {
  return queue(Work::to_device(dst, src), stream);
}

Status SimulatedDevice::to_host_async(std::span<std::byte> dst, DevicePtr src, Stream stream) {
  return queue(Work::to_host(dst, src), stream);
}

Status SimulatedDevice::copy_async(DevicePtr dst, DevicePtr src, std::int64_t bytes,
                                   Stream stream) {
  return queue(Work::copy(dst, src, bytes), stream);
}

Status SimulatedDevice::fill_async(DevicePtr dst, std::byte value, std::int64_t bytes,
                                   Stream stream) {
  return queue(Work::fill(dst, value, bytes), stream);
}

Status SimulatedDevice::launch(const Job& job, Stream stream) {
  return queue(Work::launch(job), stream);
}

Status SimulatedDevice::launch_threads(const Job& job, std::int64_t threads, Stream stream) {
  KVO_CHECK(threads >= 1);
  return queue(Work::launch(job, threads), stream);
}

bool SimulatedDevice::inside(const Work& work) const {
  if (work.job) return work.job->points_to([&](DevicePtr ptr) { return memory_.live(ptr, 0); });
  const bool writes = work.kind != Kind::kToHost;
  const bool reads = work.kind == Kind::kToHost || work.kind == Kind::kCopy;
  return (!writes || memory_.live(work.dst, work.bytes)) &&
         (!reads || memory_.live(work.src, work.bytes));
}

Status SimulatedDevice::queue(const Work& work, Stream stream) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  if (Status found = streams_.known(stream); !found) return found;
  if (!inside(work)) return fail_other("bad_pointer");
  const auto captured = streams_.captured(work, stream);
  if (!captured) return captured.error();
  if (*captured) return {};
  Point& tail = tails_.at(stream.id);
  const WorkId id = enqueue(work, tail, lanes_.at(stream.id), stream);
  tail = {queued_.at(id).clock, {id}};
  maybe_run();
  return {};
}

WorkId SimulatedDevice::enqueue(const Work& work, const Point& after, std::size_t lane,
                                Stream stream) {
  Queued fresh{.work = work, .clock = after.clock};
  fresh.clock.join(now_);
  const std::uint32_t turn = fresh.clock.advance(lane);
  const WorkId id = history_.add(work.name(), stream.id, lane, turn);
  host_.begin(id, work);
  for (const WorkId before : after.work) {
    const auto found = queued_.find(before);
    if (found == queued_.end()) continue;
    found->second.next.push_back(id);
    ++fresh.waits_for;
  }
  if (fresh.waits_for == 0) ready_.push_back(id);
  queued_.emplace(id, std::move(fresh));
  return id;
}

// ---- carrying out ----

void SimulatedDevice::maybe_run() {
  constexpr std::uint32_t kAtOnce = 1;
  constexpr std::uint32_t kNow = 1;
  if (!eagerness_) eagerness_ = schedule_.choose(4);  // 0: not before the host waits
  if (*eagerness_ == kAtOnce) {
    while (!ready_.empty()) run_ready(0);
  } else if (*eagerness_ != 0) {
    while (!ready_.empty() && schedule_.choose(2) == kNow)
      run_ready(schedule_.choose(ready_.size()));
  }
}

void SimulatedDevice::run_until(const Point& point) {
  const auto waits = [&] {
    return std::ranges::any_of(point.work, [&](WorkId id) { return queued_.contains(id); });
  };
  while (waits()) run_ready(schedule_.choose(ready_.size()));
}

void SimulatedDevice::run_ready(std::size_t index) {
  KVO_CHECK(index < ready_.size());
  const WorkId id = ready_[index];
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(index));
  const auto node = queued_.extract(id);
  const Queued& work = node.mapped();
  carry_out(id, work);
  for (const WorkId next : work.next)
    if (--queued_.at(next).waits_for == 0)
      ready_.insert(std::ranges::lower_bound(ready_, next), next);
}

void SimulatedDevice::carry_out(WorkId id, const Queued& queued) {
  const Work& work = queued.work;
  const Accessor by{.work = id, .clock = &queued.clock};
  counts_.copies += work.kind == Kind::kJob ? 0 : 1;
  std::vector<std::byte> bytes;
  switch (work.kind) {
    case Kind::kToDevice:
      if (!host_.take(id, work, bytes)) report_host(id);
      memory_.write(by, work.dst, bytes);
      break;
    case Kind::kToHost:
      bytes.resize(static_cast<std::size_t>(work.bytes));
      memory_.read(by, work.src, bytes);
      if (!host_.put(id, work, bytes)) report_host(id);
      break;
    case Kind::kCopy:
      memory_.copy(by, work.dst, work.src, work.bytes);
      break;
    case Kind::kFill:
      memory_.fill(by, work.dst, work.value, work.bytes);
      break;
    case Kind::kJob:
      run_threads(id, queued);
      break;
  }
}

void SimulatedDevice::report_host(WorkId id) {
  reports_.add({.kind = DeviceReport::Kind::kHostTouched,
                .work = id,
                .text = history_.text(id) + ": its host memory changed while it was queued"});
}

// ---- waiting ----

Status SimulatedDevice::wait_for(const Point& point) {
  run_until(point);
  now_.join(point.clock);
  for (const WorkId id : host_.watched())
    if (!queued_.contains(id) && history_.before(id, now_) && !host_.end(id)) report_host(id);
  Status heard;
  for (auto failed = failed_.begin(); failed != failed_.end();) {
    if (history_.before(*failed, now_)) {
      heard = fail_other("bad_pointer");
      failed = failed_.erase(failed);
    } else {
      ++failed;
    }
  }
  return heard;
}

Status SimulatedDevice::synchronize(Stream stream) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  if (Status free = streams_.waitable(stream); !free) return free;
  return wait_for(tails_.at(stream.id));
}

Status SimulatedDevice::synchronize(Event event) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  if (Status free = streams_.waitable(event); !free) return free;
  return wait_for(events_[event.id]);
}

Status SimulatedDevice::synchronize_all() {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  Point all;
  for (const auto& [stream, tail] : tails_) all.join(tail);
  return wait_for(all);
}

// ---- streams and events ----

Result<Stream> SimulatedDevice::create_stream() {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun.error();
  const Stream made = streams_.add_stream();
  lanes_.emplace(made.id, next_lane_++);
  tails_.emplace(made.id, Point());
  return made;
}

Status SimulatedDevice::destroy(Stream stream) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  if (Status removed = streams_.remove(stream); !removed) return removed;
  Status waited = wait_for(tails_.at(stream.id));
  tails_.erase(stream.id);
  lanes_.erase(stream.id);
  return waited;
}

Result<Event> SimulatedDevice::create_event() {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun.error();
  return streams_.add_event();
}

Status SimulatedDevice::destroy(Event event) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  if (Status removed = streams_.remove(event); !removed) return removed;
  events_.erase(event.id);
  return {};
}

Status SimulatedDevice::record(Event event, Stream stream) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  const auto captured = streams_.captured_record(event, stream);
  if (!captured) return captured.error();
  events_[event.id] = *captured ? Point() : tails_.at(stream.id);
  return {};
}

Status SimulatedDevice::wait(Stream stream, Event event) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  const auto captured = streams_.captured_wait(stream, event);
  if (!captured) return captured.error();
  if (*captured) return {};
  Point& tail = tails_.at(stream.id);
  tail.join(events_[event.id]);
  // A stream that waits again and again and is given no work would remember all that it waited for.
  std::erase_if(tail.work, [&](WorkId id) { return !queued_.contains(id); });
  return {};
}

// ---- graphs ----

Status SimulatedDevice::begin_capture(Stream stream) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  return streams_.begin_capture(stream);
}

Result<Graph> SimulatedDevice::end_capture(Stream stream) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun.error();
  auto work = streams_.end_capture(stream);
  if (!work) return work.error();
  graphs_.emplace(next_graph_, Captured{.work = std::move(*work)});
  return Graph{next_graph_++};
}

Status SimulatedDevice::replay(Graph graph, Stream stream) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  const auto found = graphs_.find(graph.id);
  if (found == graphs_.end()) return fail_other("bad_graph");
  if (Status free = streams_.waitable(stream); !free) return free;
  Captured& captured = found->second;
  // A card looks at no address now: what a graph does to freed memory is seen when it does it.
  ++counts_.replays;
  Point& tail = tails_.at(stream.id);
  tail.join(captured.end);
  if (captured.work.empty()) return {};
  Point end;
  std::vector<Point> done;
  std::vector<bool> last(captured.work.size(), true);  // nothing of the graph comes behind it
  for (const WorkNode& node : captured.work) {
    if (node.lane != 0 && !captured.lanes.contains(node.lane))
      captured.lanes.emplace(node.lane, next_lane_++);
    const std::size_t lane = node.lane == 0 ? lanes_.at(stream.id) : captured.lanes.at(node.lane);
    Point after = node.after.empty() ? tail : Point();
    for (const std::size_t before : node.after) {
      after.join(done[before]);
      last[before] = false;
    }
    const WorkId id = enqueue(node.work, after, lane, stream);
    done.push_back({queued_.at(id).clock, {id}});
  }
  for (std::size_t node = 0; node < done.size(); ++node)
    if (last[node]) end.join(done[node]);
  tail = captured.end = end;
  maybe_run();
  return {};
}

Status SimulatedDevice::destroy(Graph graph) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  return graphs_.erase(graph.id) == 1 ? Status() : fail_other("bad_graph");
}

// ---- how the threads of a kernel run ----

namespace {

// More threads than these run in their own order.
constexpr std::int64_t kMostShuffled = std::int64_t{1} << 20U;

/// What the threads of one kernel see.
class ThreadMemory final : public WatchedMemory {
 public:
  ThreadMemory(const Accessor& by, WatchedBuffers& memory, const History& history,
               ReportList& reports)
      : by_(by), memory_(memory), history_(history), reports_(reports) {}

  void enter(std::int64_t thread) { by_.thread = static_cast<std::uint32_t>(thread); }
  /// Whether an access was outside of live memory.
  [[nodiscard]] bool left() const { return left_; }

 private:
  void read(DevicePtr from, std::span<std::byte> out) override {
    look(from, out.size());
    memory_.read(by_, from, out);
  }
  void write(DevicePtr to, std::span<const std::byte> cells) override {
    look(to, cells.size());
    memory_.write(by_, to, cells);
  }
  void look(DevicePtr at, std::size_t bytes) {
    left_ = left_ || !memory_.live(at, static_cast<std::int64_t>(bytes));
    if (at.address % bytes == 0) return;
    reports_.add({.kind = DeviceReport::Kind::kMisaligned,
                  .work = by_.work,
                  .text = history_.text(by_.work) + ": an access of " + std::to_string(bytes) +
                          " bytes at " + std::to_string(at.address % bytes) + " beside it"});
  }

  Accessor by_;
  WatchedBuffers& memory_;
  const History& history_;
  ReportList& reports_;
  bool left_ = false;
};

// One of eight orders: as they are numbered, backwards, or shuffled.
std::vector<std::int64_t> drawn_order(std::int64_t threads, std::uint32_t choice) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(threads));
  std::iota(order.begin(), order.end(), 0);
  if (choice == 1) std::ranges::reverse(order);
  if (choice < 2) return order;
  traces::Random random(choice);
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

}  // namespace

void SimulatedDevice::run_threads(WorkId id, const Queued& queued) {
  const Job& job = *queued.work.job;
  const std::int64_t items = std::max<std::int64_t>(job.items(), 0);
  const std::int64_t threads = queued.work.threads == 0 ? items : queued.work.threads;
  ++counts_.jobs;
  memory_.name_cells(id, job.arguments());
  counts_.threads += threads;
  ThreadMemory memory({.work = id, .clock = &queued.clock}, memory_, history_, reports_);
  // A thread without items does nothing.
  const std::int64_t busy = std::min(threads, items);
  if (busy > kMostShuffled) {
    for (std::int64_t thread = 0; thread < busy; ++thread) {
      memory.enter(thread);
      job.run_thread(thread, threads, memory);
    }
  } else {
    constexpr std::uint64_t kOrders = 8;
    const std::uint32_t choice = busy < 2 ? 0 : schedule_.choose(kOrders);
    for (const std::int64_t thread : drawn_order(busy, choice)) {
      memory.enter(thread);
      job.run_thread(thread, threads, memory);
    }
  }
  if (memory.left()) failed_.insert(id);
}

}  // namespace kvo
