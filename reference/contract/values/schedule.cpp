#include "reference/contract/values/schedule.hpp"

namespace kvo {

std::uint32_t Schedule::choose(std::uint64_t bound) {
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
