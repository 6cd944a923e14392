#include "tools/reports/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "tools/reports/console.hpp"
#include "tools/reports/quantities.hpp"

namespace kvo::tools {
namespace {

constexpr std::int64_t kFirstDrawNs = 1'000'000'000;
constexpr std::int64_t kBetweenDrawsNs = 100'000'000;
constexpr std::int64_t kBetweenLinesNs = 10'000'000'000;
constexpr std::size_t kBar = 20;
constexpr std::string_view kClearLine = "\r\x1b[K";

void write_terminal(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

}  // namespace

std::string progress_line(std::string_view what, std::uint64_t done, ProgressEnd end,
                          double nanoseconds, std::size_t columns) {
  const bool counted = end.total && *end.total > 0;
  double share = 0;
  if (counted) share = static_cast<double>(done) / static_cast<double>(*end.total);
  if (end.nanoseconds > 0) share = std::max(share, nanoseconds / end.nanoseconds);
  share = std::min(1.0, share);
  std::string line(what);
  if (counted || end.nanoseconds > 0) {
    const auto full = static_cast<std::size_t>(share * static_cast<double>(kBar));
    line += fmt::format(" [{:#<{}}{:.<{}}] {:3.0f} %", "", full, "", kBar - full, 100 * share);
  }
  line += "  " + count_text(done) + (counted ? " of " + count_text(*end.total) : "") + "  " +
          frequency_text(static_cast<double>(done), nanoseconds);
  if (share > 0 && share < 1)
    line += fmt::format("  {} left", duration_text(nanoseconds * (1 - share) / share));
  if (line.size() > columns) line.resize(columns);
  return line;
}

Progress::Progress(std::string what, std::optional<std::uint64_t> total, double seconds)
    : what_(std::move(what)),
      end_{total, seconds * 1e9},
      on_(is_terminal(stderr)),
      start_(Clock::now()),
      next_draw_ns_(on_ ? kFirstDrawNs : kBetweenLinesNs) {}

Progress::~Progress() {
  clear();
}

std::int64_t Progress::elapsed_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
}

void Progress::advance(std::uint64_t more) {
  done_.fetch_add(more, std::memory_order_relaxed);
  const std::int64_t now = elapsed_ns();
  if (const auto lines = said_at(now); !lines.empty()) {
    clear();
    print_error(lines.front());
    for (std::size_t i = 1; i < lines.size(); ++i) print_note(lines[i]);
  }
  const std::int64_t between = on_ ? kBetweenDrawsNs : kBetweenLinesNs;
  std::int64_t due = next_draw_ns_.load(std::memory_order_relaxed);
  // Of the threads that find a drawing due, one draws.
  if (now >= due && next_draw_ns_.compare_exchange_strong(due, now + between)) draw();
}

std::vector<std::string> Progress::said_at(std::int64_t now) {
  const std::scoped_lock lock(screen_);
  return !later_.empty() && now >= say_at_ns_ ? std::exchange(later_, {})
                                              : std::vector<std::string>();
}

void Progress::say_later(std::vector<std::string> lines, std::chrono::nanoseconds after) {
  const std::scoped_lock lock(screen_);
  later_ = std::move(lines);
  say_at_ns_ = elapsed_ns() + after.count();
}

void Progress::clear() {
  const std::scoped_lock lock(screen_);
  if (shown_) write_terminal(kClearLine);
  shown_ = false;
}

void Progress::draw() {
  const std::scoped_lock lock(screen_);
  if (!on_) {
    print_note(progress_line(what_, done_.load(std::memory_order_relaxed), end_,
                             static_cast<double>(elapsed_ns()), kAnyWidth));
    return;
  }
  // The last column stays free: some terminals begin a new line when it is written.
  const std::string line =
      progress_line(what_, done_.load(std::memory_order_relaxed), end_,
                    static_cast<double>(elapsed_ns()), terminal_columns(stderr) - 1);
  write_terminal(fmt::format("{}{}", kClearLine, line));
  shown_ = true;
}

}  // namespace kvo::tools
