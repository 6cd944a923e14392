#include "tools/serving/backtrace.hpp"

#include <algorithm>
#include <iterator>

// The library reads the names of functions from debug information, not from dynamic symbols alone.
#define BOOST_STACKTRACE_LINK      // NOLINT: its name
#define BOOST_STACKTRACE_DYN_LINK  // NOLINT: as above
#include <boost/stacktrace/frame.hpp>
#include <fmt/format.h>

namespace kvo::tools {

std::vector<std::string> backtrace_lines(const std::vector<std::uint64_t>& frames) {
  constexpr std::size_t kMostName = 200;
  std::vector<std::string> lines;
  constexpr std::size_t kOfHandler = 2;  // it, and what calls it
  for (std::size_t i = kOfHandler; i < frames.size(); ++i) {
    const std::uint64_t address = frames[i];
    const boost::stacktrace::frame frame(
        reinterpret_cast<boost::stacktrace::frame::native_frame_ptr_t>(address));  // NOLINT
    std::string name = frame.name();
    if (name.find("kvo::Lockstep::") != std::string::npos) break;
    if (name.size() > kMostName) name = name.substr(0, kMostName) + "...";
    if (name.empty()) name = fmt::format("{:#x}", address);
    lines.push_back(frame.source_line() == 0 ? name
                                             : fmt::format("{} at {}:{}", name, frame.source_file(),
                                                           frame.source_line()));
  }
  return lines;
}

void tell_crashes(CaseAnswer& answer) {
  for (const CrashRecord& crash : answer.crashes) {
    auto& trace = answer.record.subjects.at(crash.subject).trace;
    if (!trace) trace.emplace();
    std::ranges::move(backtrace_lines(crash.frames), std::back_inserter(*trace));
  }
}

}  // namespace kvo::tools
