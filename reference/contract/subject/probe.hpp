// reference/contract/subject/probe.hpp: what the harness attaches to the moment a cache is called.
//
// A session calls its cache through a Probe and through nothing else, so that exactly the cache's
// own work is timed, counted and made to fail: copying results for comparison is not.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace kvo {

/// Per-thread switch of the allocator hook (tools and tests link it; without it nothing is
/// counted).
struct AllocationGate {
  bool open = false;          ///< inside a call of a cache
  std::uint64_t count = 0;    ///< allocations seen while open
  std::int64_t fail_at = -1;  ///< this many more succeed, then one fails; negative: none fails
  std::size_t limit_bytes = std::size_t{4} << 30U;  ///< a larger single request fails
  std::size_t refused_bytes = 0;  ///< the last request that failed of it; 1: no thread was left
  /// So many bytes at the beginning of each allocation are set to 0xfe: what a cache shows without
  /// having written it is then wrong, and the same in every run.
  std::size_t fill_bytes = 0;
};
/// Bytes that the whole process may have allocated, 0 for any: for sanitizers, under which the
/// system cannot be asked to limit it (RLIMIT_AS). Looked at by the hook, where there is one.
inline std::atomic<std::size_t> heap_limit_bytes = 0;  // NOLINT: as below
inline thread_local AllocationGate allocation_gate;    // NOLINT: the hook has no other way in

/// Closes the gate while the harness itself allocates amid a call of a cache: what it does must
/// neither count nor fail as the cache's own.
class HarnessWork {
 public:
  HarnessWork() : was_open_(std::exchange(allocation_gate.open, false)) {}
  ~HarnessWork() { allocation_gate.open = was_open_; }
  HarnessWork(const HarnessWork&) = delete;
  HarnessWork& operator=(const HarnessWork&) = delete;

 private:
  bool was_open_;
};

/// A clock for calls of some nanoseconds: the processor's counter where it runs evenly, which costs
/// half of what the system's clock costs; else the system's clock.
class CallClock {
 public:
  /// In ticks of the clock.
  [[nodiscard]] static std::uint64_t now() {
#if defined(__x86_64__)
    if (nanoseconds_a_tick() > 0) {
      _mm_lfence();  // earlier work has ended
      return __rdtsc();
    }
#endif
    return static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  }
  [[nodiscard]] static std::uint64_t nanoseconds(std::uint64_t ticks) {
    const double each = nanoseconds_a_tick();
    const double above = static_cast<double>(ticks) * each + 0.5;  // cut off, it is rounded
    return each > 0 ? static_cast<std::uint64_t>(above) : ticks;
  }

 private:
  /// Of the processor's counter, measured once; 0: it does not run evenly.
  [[nodiscard]] static double nanoseconds_a_tick() {
    static const double kMeasured = measured();
    return kMeasured;
  }
  [[nodiscard]] static double measured();
};

/// Times calls and opens the allocation gate around them.
class Probe {
 public:
  /// Runs `call`, adds its time, and returns what it returned.
  template <class Call>
  decltype(auto) operator()(Call&& call) {
    const Scope scope(*this);
    return std::forward<Call>(call)();
  }

  /// Adds the time of a call that another process measured.
  void add_nanoseconds(std::uint64_t nanoseconds) { elsewhere_ += nanoseconds; }
  /// Nanoseconds spent in calls since the last take.
  std::uint64_t take_nanoseconds() {
    return CallClock::nanoseconds(std::exchange(ticks_, 0)) + std::exchange(elsewhere_, 0);
  }

 private:
  class Scope {
   public:
    explicit Scope(Probe& probe)
        : probe_(probe),
          was_open_(std::exchange(allocation_gate.open, true)),
          start_(CallClock::now()) {}
    ~Scope() {
      allocation_gate.open = was_open_;
      probe_.ticks_ += CallClock::now() - start_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Probe& probe_;
    bool was_open_;  ///< a cache calls the one that it has inside
    std::uint64_t start_;
  };

  std::uint64_t ticks_ = 0;
  std::uint64_t elsewhere_ = 0;  // nanoseconds
};

}  // namespace kvo
