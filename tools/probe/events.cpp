#include "tools/probe/events.hpp"

#include <utility>

#include <fmt/format.h>

#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

constexpr std::size_t kLongestEvent = std::size_t{1} << 20U;

}  // namespace

bool ServerEvents::add(std::string_view piece) {
  if (ended_ || !failure_.empty()) return false;
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    if (line_.size() + std::min(end, piece.size()) > kLongestEvent) {
      failure_ = fmt::format("an event of more than {} bytes", kLongestEvent);
      return false;
    }
    line_ += piece.substr(0, end);
    if (end == piece.npos) return true;
    piece.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    if (!line(std::exchange(line_, {}))) return false;
  }
  return true;
}

// Names, numbers and comments of events say nothing here.
bool ServerEvents::line(std::string_view line) {
  constexpr std::size_t kMostShown = 120;
  constexpr std::string_view kData = "data:";
  if (line.starts_with(kData)) {
    line.remove_prefix(kData.size());
    if (line.starts_with(' ')) line.remove_prefix(1);
    ended_ = line == "[DONE]";
    return !ended_ && visit_(line);
  }
  for (const std::string_view field : {"event:", "id:", "retry:", ":"})
    if (line.starts_with(field)) return true;
  if (line.empty()) return true;
  failure_ =
      fmt::format("no server-sent event: {}", printable(std::string(line.substr(0, kMostShown))));
  return false;
}

}  // namespace kvo::tools
