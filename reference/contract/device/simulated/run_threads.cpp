// How the threads of a kernel run on a simulated device.
#include <algorithm>
#include <numeric>
#include <utility>

#include "reference/contract/device/simulated/simulated_device.hpp"

namespace kvo {
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
