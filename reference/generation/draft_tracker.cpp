#include "reference/generation/draft_tracker.hpp"

#include <algorithm>
#include <utility>

namespace kvo::generation {

DraftTracker::DraftTracker(const TrackerSizes& sizes)
    : sizes_(sizes), current_(std::min(std::max(sizes.initial, sizes.min), sizes.max)) {}

void DraftTracker::record(std::int64_t accepted, std::int64_t proposed) {
  constexpr double kGrowAbove = 0.80;
  constexpr double kShrinkBelow = 0.40;
  std::deque<bool> outcomes = outcomes_;
  // Outcomes that would be dropped again need not be pushed.
  for (std::int64_t i = std::max<std::int64_t>(proposed - sizes_.window, 0); i < proposed; ++i)
    outcomes.push_back(i < accepted);
  while (std::ssize(outcomes) > sizes_.window) outcomes.pop_front();
  outcomes_ = std::move(outcomes);
  if (std::ssize(outcomes_) < sizes_.window / 2) return;
  if (rate() > kGrowAbove && current_ < sizes_.max)
    ++current_;
  else if (rate() < kShrinkBelow && current_ > sizes_.min)
    --current_;
}

double DraftTracker::rate() const {
  if (outcomes_.empty()) return 1;
  return static_cast<double>(std::ranges::count(outcomes_, true)) /
         static_cast<double>(outcomes_.size());
}

}  // namespace kvo::generation
