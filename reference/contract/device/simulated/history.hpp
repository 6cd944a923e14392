// reference/contract/device/simulated/history.hpp: which work happens before which.
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
#include <span>
#include <string>
#include <string_view>
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

}  // namespace kvo
