#include "tools/usage.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>

#include "traces/io/trace_error.hpp"

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
  // Rows of the usual table: `row` belongs to from[i], the others to the letters before it.
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last;
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < from.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t changed = last[j] + (from[i] == to[j] ? 0 : 1);
      row[j + 1] = std::min({changed, last[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j])
        row[j + 1] = std::min(row[j + 1], before_last[j - 1] + 1);
    }
  }
  return row[to.size()];
}

std::string_view closest_word(std::string_view word, std::span<const std::string> known) {
  std::string_view closest;
  // A third of the letters may be wrong; more is another word.
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
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
                        std::span<const std::string> known) {
  const std::string hint = did_you_mean(word, known);
  const std::string text =
      fmt::format("unknown {} '{}'{} There are: {}", what, traces::excerpt(word),
                  hint.empty() ? "." : hint, fmt::join(known, ", "));
  return UsageError{text};
}

}  // namespace kvo::tools
