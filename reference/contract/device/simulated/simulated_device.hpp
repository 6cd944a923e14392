// reference/contract/device/simulated/simulated_device.hpp: a device that does what a card may do.
//
// What is queued waits. It is carried out in an order that is drawn among all that streams and
// events allow, as late as when the host waits for it; the threads of a kernel run in a drawn
// order, too. Meanwhile every access is looked at, and what is wrong is reported, also where the
// drawn order hides it. The same seed, or list of choices, gives the same run.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "reference/contract/device/device.hpp"
#include "reference/contract/device/simulated/watched_memory.hpp"
#include "reference/contract/device/streams.hpp"
#include "reference/contract/values/schedule.hpp"

namespace kvo {

struct SimulatedOptions {
  Schedule schedule = Schedule(std::vector<std::uint32_t>());
  /// What fresh memory holds: by default zeros that count as written, as Device::alloc promises.
  WatchedBuffers::Fresh fresh = {};
  std::int64_t capacity = std::int64_t{1} << 40U;  ///< bytes
  std::int64_t fail_alloc = 0;                     ///< the alloc of that number fails; 0: none
  std::int64_t lose_at = 0;  ///< from the call of that number on the device is lost; 0: never
};

/// What was carried out.
struct SimulatedCounts {
  std::int64_t allocs = 0;
  std::int64_t copies = 0;  ///< and fills
  std::int64_t jobs = 0;
  std::int64_t threads = 0;  ///< of jobs
  std::int64_t replays = 0;
};

/// Errors beside those of Device: other:alloc_failed, other:device_lost. An access of a kernel
/// outside of live memory is a report, and in the synchronize behind it other:bad_pointer. What is
/// refused when it is queued is no report.
class SimulatedDevice final : public Device {
 public:
  explicit SimulatedDevice(SimulatedOptions options)
      : options_(std::move(options)), memory_(history_, reports_, options_.fresh) {}
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;

  [[nodiscard]] Result<DevicePtr> alloc(std::int64_t bytes) override;
  [[nodiscard]] Status free(DevicePtr ptr) override;
  /// A job has a thread an item, or as many as a grid has: each runs run_thread.
  [[nodiscard]] Status queue(const Work& work, Stream stream) override;
  [[nodiscard]] Result<std::uint64_t> control(const StreamCall& call) override;

  /// Waits for everything.
  [[nodiscard]] Status synchronize_all();

  [[nodiscard]] const std::vector<DeviceReport>& reports() const { return reports_.all(); }
  [[nodiscard]] const std::vector<std::uint32_t>& choices() const {
    return options_.schedule.taken();
  }
  [[nodiscard]] const SimulatedCounts& counts() const { return counts_; }
  /// Buffers that were allocated and not given back.
  [[nodiscard]] std::size_t live() const { return memory_.live_buffers(); }
  /// Bytes of the host that stand behind all buffers.
  [[nodiscard]] std::int64_t backed_bytes() const { return memory_.backed_bytes(); }
  /// Pieces of work that are queued.
  [[nodiscard]] std::size_t queued() const { return queued_.size(); }

 private:
  /// A place in the order of work: all of this has happened before.
  struct Point {
    Clock clock;
    std::vector<WorkId> work;  ///< the last pieces
    void join(const Point& other);
  };
  struct Queued {
    Work work;
    Clock clock;
    std::size_t waits_for = 0;
    std::vector<WorkId> next = {};
  };
  struct Lane {
    std::size_t number = 0;
    Point tail = {};
  };
  struct Replayed {
    std::map<std::size_t, std::size_t> lanes = {};  ///< of the further streams of the graph
    Point end = {};                                 ///< of the newest replay
  };

  /// Counts a call. Errors  other:device_lost.
  [[nodiscard]] Status begin_call();
  [[nodiscard]] Status carry_out(const StreamCall& call, std::uint64_t number);
  void queue_replay(Graph graph, Stream stream);
  WorkId enqueue(const Work& work, const Point& after, std::size_t lane, Stream stream);
  void maybe_run();
  void run_until(const Point& point);
  [[nodiscard]] Status wait_for(const Point& point);
  void run_ready(std::size_t index);
  void carry_out(WorkId id, const Queued& work);
  void run_threads(WorkId id, const Queued& work);
  void report_host(WorkId id);

  SimulatedOptions options_;
  std::int64_t calls_ = 0;

  History history_;
  ReportList reports_;
  WatchedBuffers memory_;
  HostWatch host_;
  StreamTable streams_;
  std::map<std::uint64_t, Lane> lanes_{{0, Lane()}};  ///< of streams
  std::size_t next_lane_ = 1;
  std::map<std::uint64_t, Point> events_;
  std::map<std::uint64_t, Replayed> graphs_;
  Clock now_;  ///< what has happened before what the host does next
  std::map<WorkId, Queued> queued_;
  std::vector<WorkId> ready_;  ///< queued, and nothing before it is
  std::optional<std::uint32_t> eagerness_;
  std::set<WorkId> failed_;  ///< accesses outside of memory that the host has not heard of
  SimulatedCounts counts_;
};

}  // namespace kvo
