#include "tools/commands/usage.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/file.h>

#include "tools/commands/program_name.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {

traces::TraceResult<void> lock_or_refuse(int descriptor, const std::string& path) {
  constexpr std::chrono::milliseconds kPause{20};
  constexpr int kAttempts = 25;  // workers of a killed process have the lock for a moment
  for (int attempt = 0; flock(descriptor, LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (errno != EWOULDBLOCK) return traces::error_at({path}, "", "", std::strerror(errno));
    if (attempt == kAttempts)
      return traces::error_at({path}, "", "", "another kvoracle process writes it");
    std::this_thread::sleep_for(kPause);
  }
  return {};
}

std::size_t edit_distance(std::string_view from, std::string_view to) {
  // cost[i][j]: of the first i letters of one word and the first j of the other.
  std::vector<std::vector<std::size_t>> cost(from.size() + 1,
                                             std::vector<std::size_t>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i)
    for (std::size_t j = 0; j <= to.size(); ++j) {
      std::size_t& least = cost[i][j] = i + j;
      if (i == 0 || j == 0) continue;
      const std::size_t changed = cost[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      least = std::min({changed, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        least = std::min(least, cost[i - 2][j - 2] + 1);
    }
  return cost[from.size()][to.size()];
}

std::string_view closest_word(std::string_view word, std::span<const std::string> known) {
  std::string_view closest;
  // A third of the letters may be wrong; more is another word.
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    if (!begins &&
        std::max(word.size(), candidate.size()) >= best + std::min(word.size(), candidate.size()))
      continue;
    const std::size_t distance = begins ? 1 : edit_distance(word, candidate);
    if (distance >= best) continue;
    best = distance;
    closest = candidate;
  }
  return closest;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
  const std::string_view closest = closest_word(word, known);
  return closest.empty() ? std::string() : fmt::format("; did you mean '{}'?", closest);
}

UsageError unknown_word(std::string_view what, std::string_view word,
                        std::span<const std::string> known, std::span<const std::string> others) {
  constexpr std::size_t kMostWord = 32;
  constexpr std::size_t kMostText = 150;
  std::vector<std::string> near(known.begin(), known.end());
  near.insert(near.end(), others.begin(), others.end());
  const std::string hint = did_you_mean(word.substr(0, word.find_first_of("*?[")), near);
  std::string text = fmt::format("unknown {} '{}'{}", what, printable(word, kMostWord), hint);
  if (!hint.empty()) return UsageError{text};
  text += ". There are: ";
  std::size_t shown = 0;
  for (; shown < known.size() && text.size() + known[shown].size() < kMostText; ++shown)
    text += known[shown] + (shown + 1 < known.size() ? ", " : "");
  if (shown < known.size())
    text += fmt::format("... ({}; {} list {}s)", known.size(), program_name(), what);
  return UsageError{text};
}

}  // namespace kvo::tools
