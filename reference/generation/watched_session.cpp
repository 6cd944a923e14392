#include "reference/generation/watched_session.hpp"

#include <algorithm>

namespace kvo::generation {

void StepLog::forward(std::string_view who, std::span<const std::int64_t> ids, std::int64_t past) {
  constexpr std::size_t kMostShown = 8;
  std::string work = "a " + std::string(who) + "forward of [";
  for (std::size_t i = 0; i < std::min(ids.size(), kMostShown); ++i)
    work += (i > 0 ? ", " : "") + std::to_string(ids[i]);
  if (ids.size() > kMostShown) work += ", .. " + std::to_string(ids.size()) + " tokens";
  steps_.push_back({work + "] behind " + std::to_string(past) + " positions", ""});
}

void StepLog::chose(std::int64_t token) {
  if (steps_.empty()) return;  // a verification by itself
  std::string& outcome = steps_.back().outcome;
  outcome += (outcome.empty() ? "token " : ", ") + std::to_string(token);
}

}  // namespace kvo::generation
