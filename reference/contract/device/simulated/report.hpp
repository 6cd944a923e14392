// reference/contract/device/simulated/report.hpp: which work happens before which, and what a
// simulated device reports about its users.
//
// Words    lane      a sequence of work in which each piece happens before the next: a stream, or a
//                    further stream of a graph.
//          turn      the number of a piece within its lane, from 1.
//          clock     for each lane the last turn that has happened before (Fidge, Mattern, 1988).
// The host has no lane: what it does itself it does when it synchronizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace kvo {

class Clock {
 public:
  [[nodiscard]] std::uint32_t at(std::size_t lane) const {
    return lane < turns_.size() ? turns_[lane] : 0;
  }
  /// Takes the lane one turn on. Returns the turn.
  std::uint32_t advance(std::size_t lane);
  /// What has happened before either.
  void join(const Clock& other);

 private:
  std::vector<std::uint32_t> turns_;
};

/// A piece of work, numbered from 1 as it was queued; 0: none.
using WorkId = std::uint32_t;

/// What was queued, and sets of it.
class History {
 public:
  /// name: what it does, for reports; it lives as long as the program.
  WorkId add(std::string_view name, std::uint64_t stream, std::size_t lane, std::uint32_t turn);
  /// Whether the work has happened before all that sees this clock.
  [[nodiscard]] bool before(WorkId work, const Clock& clock) const {
    const Stamp& stamp = stamps_[work];
    return clock.at(stamp.lane) >= stamp.turn;
  }
  [[nodiscard]] std::size_t lane(WorkId work) const { return stamps_[work].lane; }
  /// "#3 to_half on stream 1".
  [[nodiscard]] std::string text(WorkId work) const;

  /// A set of work, by a number; 0 is the empty one.
  using Set = std::uint32_t;
  [[nodiscard]] std::span<const WorkId> members(Set set) const { return sets_[set]; }
  /// The members that have not happened before the clock, and behind them `last`.
  [[nodiscard]] Set with(Set set, WorkId last, const Clock& clock);

 private:
  struct Stamp {
    std::string_view name;
    std::uint64_t stream = 0;
    std::size_t lane = 0;
    std::uint32_t turn = 0;
  };
  std::vector<Stamp> stamps_ = {{}};
  std::vector<std::vector<WorkId>> sets_ = {{}};
  std::map<std::vector<WorkId>, Set> numbers_;
  struct {
    Set set = 0;
    WorkId last = 0;
    Set result = 0;
  } newest_;  ///< the same is asked for cell after cell
};

/// A fault of those who use a device. It may do no harm in the order that was drawn.
struct DeviceReport {
  enum class Kind : std::uint8_t {
    kUnwritten,     ///< a read of unwritten memory
    kRace,          ///< two pieces of work, or two threads of one, and nothing orders them
    kOutOfBounds,   ///< an access outside of every buffer
    kMisaligned,    ///< an address that is no multiple of the size of the access
    kUseAfterFree,  ///< an access to a buffer that was freed, or freeing one that is in use
    kOverlap,       ///< a copy onto itself
    kHostTouched,   ///< host memory of a copy was changed or lost before the host had waited
  };
  Kind kind = Kind::kRace;
  WorkId work = 0;        ///< the work that did it; 0: the host
  WorkId other = 0;       ///< of a race, or of a free: the other one
  std::int64_t buf = -1;  ///< buffers in order of their allocs; -1: none
  std::int64_t off = 0;   ///< bytes from its beginning, or of the host memory
  std::string text = {};  ///< for people

  friend bool operator==(const DeviceReport&, const DeviceReport&) = default;
};

/// "race", "use after free".
[[nodiscard]] std::string_view report_name(DeviceReport::Kind kind);

/// Keeps the first report of each kind about the same work, up to a number.
class ReportList {
 public:
  /// How many are kept.
  static constexpr std::size_t kMost = 1000;

  void add(DeviceReport report);
  /// Whether another report of that kind about that work would be dropped.
  [[nodiscard]] bool knows(DeviceReport::Kind kind, WorkId work, WorkId other) const {
    return reports_.size() >= kMost || known_.contains({kind, work, other});
  }
  [[nodiscard]] const std::vector<DeviceReport>& all() const { return reports_; }

 private:
  std::vector<DeviceReport> reports_;
  std::set<std::tuple<DeviceReport::Kind, WorkId, WorkId>> known_;
};

}  // namespace kvo
