// reference/contract/values/schedule.hpp: the choices that a simulated device leaves open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reference/contract/values/random.hpp"

namespace kvo {

/// Answers choices from a seed, or from a list and 0 behind its end. So every list is a schedule,
/// and a shorter one or one with smaller numbers is a simpler one: the empty list does everything
/// as late as can be, in the order in which it was queued.
class Schedule {
 public:
  Schedule() = default;
  explicit Schedule(std::uint64_t seed) : seed_(seed), random_(traces::Random(seed)) {}
  explicit Schedule(std::vector<std::uint32_t> choices) : given_(std::move(choices)) {}

  /// 0 to bound - 1. Requires 1 <= bound < 2^32; 1 is no choice and takes none of the list.
  [[nodiscard]] std::uint32_t choose(std::uint64_t bound);
  /// What it was made of: a seed, or nothing where that is the list.
  [[nodiscard]] const std::optional<std::uint64_t>& seed() const { return seed_; }
  [[nodiscard]] const std::vector<std::uint32_t>& given() const { return given_; }
  /// All choices so far: as a list they give the same schedule.
  [[nodiscard]] const std::vector<std::uint32_t>& taken() const { return taken_; }

 private:
  std::optional<std::uint64_t> seed_;
  std::optional<traces::Random> random_;
  std::vector<std::uint32_t> given_;
  std::vector<std::uint32_t> taken_;
};

inline std::uint32_t Schedule::choose(std::uint64_t bound) {
  if (bound <= 1) return 0;
  std::uint64_t choice = 0;
  if (random_) {
    choice = random_->below(bound);
  } else if (taken_.size() < given_.size()) {
    choice = given_[taken_.size()] % bound;
  }
  taken_.push_back(static_cast<std::uint32_t>(choice));
  return taken_.back();
}

}  // namespace kvo
