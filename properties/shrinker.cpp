#include "properties/shrinker.hpp"

#include <algorithm>
#include <utility>

namespace kvo {
namespace {

Script without(const Script& script, std::size_t begin, std::size_t count) {
  Script rest(script.begin(), script.begin() + static_cast<std::ptrdiff_t>(begin));
  const std::size_t end = std::min(script.size(), begin + count);
  rest.insert(rest.end(), script.begin() + static_cast<std::ptrdiff_t>(end), script.end());
  return rest;
}

// Drops chunks of `size` from the end on, for what was set up early is needed longest. True if any
// could go.
bool drop_chunks(Script& script, std::size_t size,
                 const std::function<bool(const Script&)>& fails) {
  bool dropped = false;
  for (std::size_t end = script.size(); end > 0;) {
    const std::size_t begin = end > size ? end - size : 0;
    Script rest = without(script, begin, end - begin);
    if (fails(rest)) {
      script = std::move(rest);
      dropped = true;
    }
    end = begin;
  }
  return dropped;
}

// Replaces operations by smaller ones. True if any could be.
bool shrink_arguments(Script& script, const std::function<bool(const Script&)>& fails) {
  bool shrunk = false;
  for (std::size_t i = 0; i < script.size(); ++i) {
    bool again = true;
    while (again) {
      again = false;
      const Op current = script[i];
      current.kind().shrink(current.arguments(), [&](std::shared_ptr<const void> smaller) {
        if (again) return;
        Script candidate = script;
        candidate[i] = Op(current.kind(), std::move(smaller));
        if (!fails(candidate)) return;
        script = std::move(candidate);
        again = shrunk = true;
      });
    }
  }
  return shrunk;
}

}  // namespace

void for_each_simpler(const Script& script, const std::function<bool(const Script&)>& candidate) {
  for (std::size_t size = script.size(); size > 0; size /= 2)
    for (std::size_t begin = 0; begin < script.size(); begin += size)
      if (candidate(without(script, begin, size))) return;
  bool done = false;
  for (std::size_t i = 0; i < script.size() && !done; ++i) {
    script[i].kind().shrink(script[i].arguments(), [&](std::shared_ptr<const void> smaller) {
      if (done) return;
      Script simpler = script;
      simpler[i] = Op(script[i].kind(), std::move(smaller));
      done = candidate(simpler);
    });
  }
}

Script shrink_script(Script script, const std::function<bool(const Script&)>& fails,
                     std::uint64_t most_attempts) {
  std::uint64_t attempts = 0;
  const auto limited = [&](const Script& candidate) {
    return attempts++ < most_attempts && fails(candidate);
  };
  bool helped = true;
  while (helped && attempts < most_attempts) {
    helped = false;
    for (std::size_t size = std::max<std::size_t>(script.size() / 2, 1); size > 0; size /= 2)
      helped = drop_chunks(script, size, limited) || helped;
    helped = shrink_arguments(script, limited) || helped;
  }
  return script;
}

}  // namespace kvo
