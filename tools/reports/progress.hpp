// tools/reports/progress.hpp: how far a long command is, on one line of the terminal behind
// standard error.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvo::tools {

/// What ends a command that takes long, whichever comes first.
struct ProgressEnd {
  std::optional<std::uint64_t> total = std::nullopt;  ///< things done
  double nanoseconds = 0;                             ///< 0: no limit
};

/// One line of at most `columns`: "cases [#####.....]  50 %  1,234 of 2,468  617 /s  2.00 s left".
/// Where the end is a time, the bar is its share: "cases [#####.....]  50 %  1,234  617 /s  2.00 s
/// left". Without an end there is neither bar nor time left.
[[nodiscard]] std::string progress_line(std::string_view what, std::uint64_t done, ProgressEnd end,
                                        double nanoseconds, std::size_t columns);

/// Counts things done and shows them: on a terminal from the first second on, ten times a second at
/// most, and nothing is left on the screen when it ends; elsewhere a line every ten seconds.
/// Threads  any may call advance and clear.
class Progress {
 public:
  /// The end is `total` things, or `seconds` (0: no limit), whichever comes first.
  explicit Progress(std::string what, std::optional<std::uint64_t> total = std::nullopt,
                    double seconds = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// With 0 only the time has gone on.
  void advance(std::uint64_t more = 1);
  /// Prints lines on standard error some seconds from now, unless the command ends before: who
  /// waits reads them early, and who does not wait reads them in the result.
  void say_later(std::vector<std::string> lines,
                 std::chrono::nanoseconds after = std::chrono::seconds(5));
  /// Takes the line off the screen until the next advance, so that something else can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::int64_t elapsed_ns() const;
  void draw();
  [[nodiscard]] std::vector<std::string> said_at(std::int64_t now);

  std::string what_;
  ProgressEnd end_;
  bool on_;
  Clock::time_point start_;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<std::int64_t> next_draw_ns_;
  std::mutex screen_;
  bool shown_ = false;              // guarded by screen_
  std::vector<std::string> later_;  // the same; empty: nothing
  std::int64_t say_at_ns_ = 0;      // the same
};

}  // namespace kvo::tools
