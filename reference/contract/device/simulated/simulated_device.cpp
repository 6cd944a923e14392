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

void SimulatedDevice::Point::join(const Point& other) {
  clock.join(other.clock);
  for (const WorkId id : other.work)
    if (std::ranges::find(work, id) == work.end()) work.push_back(id);
}

Status SimulatedDevice::begin_call() {
  ++calls_;
  const bool lost = options_.lose_at != 0 && calls_ >= options_.lose_at;
  return lost ? Status(fail_other("device_lost")) : Status();
}

Result<DevicePtr> SimulatedDevice::alloc(std::int64_t bytes) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun.error();
  ++counts_.allocs;
  const bool fits = bytes >= 0 && bytes <= options_.capacity - memory_.live_bytes();
  if (!fits || counts_.allocs == options_.fail_alloc) return fail_other("alloc_failed");
  return memory_.alloc(bytes);
}

Status SimulatedDevice::free(DevicePtr ptr) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  return memory_.free(ptr, now_);
}

// ---- queueing ----

Status SimulatedDevice::queue(const Work& work, Stream stream) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  if (Status found = streams_.known(stream); !found) return found;
  const auto live = [&](DevicePtr ptr, std::int64_t bytes) { return memory_.live(ptr, bytes); };
  if (!work.inside(live)) return fail_other("bad_pointer");
  const auto captured = streams_.captured(work, stream);
  if (!captured) return captured.error();
  if (*captured) return {};
  Lane& lane = lanes_.at(stream.id);
  const WorkId id = enqueue(work, lane.tail, lane.number, stream);
  lane.tail = {queued_.at(id).clock, {id}};
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
  if (!eagerness_) eagerness_ = options_.schedule.choose(4);  // 0: not before the host waits
  if (*eagerness_ == kAtOnce) {
    while (!ready_.empty()) run_ready(0);
  } else if (*eagerness_ != 0) {
    while (!ready_.empty() && options_.schedule.choose(2) == kNow)
      run_ready(options_.schedule.choose(ready_.size()));
  }
}

void SimulatedDevice::run_until(const Point& point) {
  const auto waits = [&] {
    return std::ranges::any_of(point.work, [&](WorkId id) { return queued_.contains(id); });
  };
  while (waits()) run_ready(options_.schedule.choose(ready_.size()));
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

Status SimulatedDevice::synchronize_all() {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun;
  Point all;
  for (const auto& [stream, lane] : lanes_) all.join(lane.tail);
  return wait_for(all);
}

// ---- streams, events and graphs ----

Result<std::uint64_t> SimulatedDevice::control(const StreamCall& call) {
  const HarnessWork ours;
  if (Status begun = begin_call(); !begun) return begun.error();
  auto number = streams_.control(call);
  if (!number) return number;
  if (Status done = carry_out(call, *number); !done) return done.error();
  return number;
}

Status SimulatedDevice::carry_out(const StreamCall& call, std::uint64_t number) {
  switch (call.kind) {
    case Call::kCreateStream:
      lanes_.emplace(number, Lane{.number = next_lane_++});
      return {};
    case Call::kDestroyStream:
      return wait_for(lanes_.extract(call.stream.id).mapped().tail);
    case Call::kDestroyEvent:
      events_.erase(call.event.id);
      return {};
    case Call::kRecord:
      events_[call.event.id] = number != 0 ? Point() : lanes_.at(call.stream.id).tail;
      return {};
    case Call::kWait:
      if (number == 0) {
        Point& tail = lanes_.at(call.stream.id).tail;
        tail.join(events_[call.event.id]);
        // A stream that waits again and again without work would remember all that it waited for.
        std::erase_if(tail.work, [&](WorkId id) { return !queued_.contains(id); });
      }
      return {};
    case Call::kSynchronizeStream:
      return wait_for(lanes_.at(call.stream.id).tail);
    case Call::kSynchronizeEvent:
      return wait_for(events_[call.event.id]);
    case Call::kReplay:
      queue_replay(call.graph, call.stream);
      return {};
    case Call::kDestroyGraph:
      graphs_.erase(call.graph.id);
      return {};
    default:  // the table has done it
      return {};
  }
}

// Like a card it checks no address now: an access to freed memory shows when it happens.
void SimulatedDevice::queue_replay(Graph graph, Stream stream) {
  const WorkGraph& work = streams_.work_of(graph);
  Replayed& replayed = graphs_[graph.id];
  ++counts_.replays;
  Lane& first = lanes_.at(stream.id);
  first.tail.join(replayed.end);
  if (work.empty()) return;
  Point end;
  std::vector<Point> done;
  std::vector<bool> last(work.size(), true);  // nothing of the graph comes after it
  for (const WorkNode& node : work) {
    if (node.lane != 0 && !replayed.lanes.contains(node.lane))
      replayed.lanes.emplace(node.lane, next_lane_++);
    const std::size_t lane = node.lane == 0 ? first.number : replayed.lanes.at(node.lane);
    Point after = node.after.empty() ? first.tail : Point();
    for (const std::size_t before : node.after) {
      after.join(done[before]);
      last[before] = false;
    }
    const WorkId id = enqueue(node.work, after, lane, stream);
    done.push_back({queued_.at(id).clock, {id}});
  }
  for (std::size_t node = 0; node < done.size(); ++node)
    if (last[node]) end.join(done[node]);
  first.tail = replayed.end = end;
  maybe_run();
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
  const auto run = [&](std::int64_t thread) {
    memory.enter(thread);
    job.run_thread(thread, threads, memory);
  };
  if (busy > kMostShuffled) {
    for (std::int64_t thread = 0; thread < busy; ++thread) run(thread);
  } else {
    constexpr std::uint64_t kOrders = 8;
    const std::uint32_t choice = busy < 2 ? 0 : options_.schedule.choose(kOrders);
    std::ranges::for_each(drawn_order(busy, choice), run);
  }
  if (memory.left()) failed_.insert(id);
}

}  // namespace kvo
