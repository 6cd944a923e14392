// reference/generation/draft_tracker.hpp: how many tokens a draft model guesses at a time.
//
// Source   rules ZF-110 to ZF-112.
#pragma once

#include <cstdint>
#include <deque>

namespace kvo::generation {

/// Bounds of a draft length, in tokens, and how many outcomes decide.
struct TrackerSizes {
  std::int64_t initial = 4;
  std::int64_t min = 1;
  std::int64_t max = 8;
  std::int64_t window = 32;
};

/// Follows how many guesses were right, and moves the draft length by one at a time.
class DraftTracker {
 public:
  /// Most outcomes that a tracker holds.
  static constexpr std::int64_t kMostOutcomes = std::int64_t{1} << 20U;

  /// Requires  0 <= window <= kMostOutcomes.
  explicit DraftTracker(const TrackerSizes& sizes);

  /// Of `proposed` guesses the first `accepted` were right (ZF-111).
  void record(std::int64_t accepted, std::int64_t proposed);
  /// The draft length.
  [[nodiscard]] std::int64_t current() const { return current_; }
  /// Right guesses among the outcomes held; 1 without any.
  [[nodiscard]] double rate() const;

 private:
  TrackerSizes sizes_;
  std::int64_t current_;
  std::deque<bool> outcomes_;  ///< the latest, at most sizes_.window
};

}  // namespace kvo::generation
