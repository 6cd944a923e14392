// The library reads the names of functions from debug information, not from dynamic symbols alone.
#define BOOST_STACKTRACE_LINK      // NOLINT: its name
#define BOOST_STACKTRACE_DYN_LINK  // NOLINT: as above
#include <utility>

#include <boost/stacktrace/frame.hpp>
#include <fmt/format.h>

#include "tools/workers/isolated.hpp"

namespace kvo::tools {

void name_frames(CaseResult& result) {
  constexpr std::size_t kMostName = 200;
  constexpr std::size_t kOfHandler = 2;  // the handler, and what calls it
  for (SubjectResult& subject : result.subjects) {
    const auto frames = std::exchange(subject.frames, std::nullopt);
    if (!frames) continue;
    auto& trace = subject.trace;
    if (!trace) trace.emplace();
    for (std::size_t i = kOfHandler; i < frames->size(); ++i) {
      const boost::stacktrace::frame frame(
          reinterpret_cast<boost::stacktrace::frame::native_frame_ptr_t>((*frames)[i]));  // NOLINT
      std::string name = frame.name();
      if (name.find("kvo::Lockstep::") != std::string::npos) break;
      if (name.size() > kMostName) name = name.substr(0, kMostName) + "...";
      if (name.empty()) name = fmt::format("{:#x}", (*frames)[i]);
      if (frame.source_line() > 0)
        name += fmt::format(" at {}:{}", frame.source_file(), frame.source_line());
      trace->push_back(std::move(name));
    }
  }
}

}  // namespace kvo::tools
