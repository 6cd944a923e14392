// The library reads the names of functions from debug information, not from dynamic symbols alone.
#define BOOST_STACKTRACE_LINK      // NOLINT: its name
#define BOOST_STACKTRACE_DYN_LINK  // NOLINT: as above
#include <utility>

#include <boost/stacktrace/frame.hpp>
#include <dlfcn.h>
#include <fmt/format.h>

#include "tools/workers/isolated.hpp"

namespace kvo::tools {
namespace {

std::string name_of(std::uint64_t address) {
  constexpr std::size_t kMostName = 200;
  const boost::stacktrace::frame frame(
      reinterpret_cast<boost::stacktrace::frame::native_frame_ptr_t>(address));  // NOLINT
  std::string name = frame.name();
  if (name.size() > kMostName) name = name.substr(0, kMostName) + "...";
  if (name.empty()) name = fmt::format("{:#x}", address);
  if (frame.source_line() > 0)
    name += fmt::format(" at {}:{}", frame.source_file(), frame.source_line());
  return name;
}

std::vector<std::string> names_of(const std::vector<std::uint64_t>& frames) {
  std::vector<std::string> names;
  for (const std::uint64_t frame : frames) names.push_back(name_of(frame));
  return names;
}

// The same, with the library that the process which crashed had loaded, at another address.
std::vector<std::string> names_with(const LoadedLibrary& library,
                                    std::vector<std::uint64_t> frames) {
  const auto named = in_process<std::vector<std::string>>({.quiet = true}, [&] {
    if (void* handle = dlopen(library.path.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
      void* symbol = dlsym(handle, "kvoracle_library_of");
      Dl_info own{};
      Dl_info at{};
      for (std::uint64_t& frame : frames) {
        const std::uint64_t moved = frame - library.moved_by + moved_by(handle);
        if (dladdr(symbol, &own) != 0 &&
            dladdr(reinterpret_cast<void*>(moved), &at) != 0 &&  // NOLINT: an address
            at.dli_fbase == own.dli_fbase)
          frame = moved;
      }
    }
    return names_of(frames);
  });
  const auto* names = std::get_if<std::vector<std::string>>(&named);
  return names != nullptr ? *names : names_of(frames);
}

}  // namespace

void name_frames(CaseResult& result) {
  constexpr std::size_t kOfHandler = 2;  // the handler, and what calls it
  for (SubjectResult& subject : result.subjects) {
    const auto frames = std::exchange(subject.frames, std::nullopt);
    const auto library = std::exchange(subject.library, std::nullopt);
    if (!frames) continue;
    const auto names = library ? names_with(*library, *frames) : names_of(*frames);
    auto& trace = subject.trace;
    if (!trace) trace.emplace();
    for (std::size_t i = kOfHandler; i < names.size(); ++i) {
      if (names[i].find("kvo::Lockstep::") != std::string::npos) break;
      trace->push_back(names[i]);
    }
  }
}

}  // namespace kvo::tools
