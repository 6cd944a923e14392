#include "properties/replay/prefix_hits.hpp"

#include <algorithm>
#include <utility>

#include <boost/unordered/unordered_flat_set.hpp>

namespace kvo::replay {

PrefixHits::PrefixHits(const LoweringInput& input, std::int64_t block) : block_(block) {
  boost::unordered_flat_set<std::uint64_t> seen;
  for (const Request& request : input.earlier)
    seen.insert(request.block_ids.begin(), request.block_ids.end());
  for (const Request& request : input.requests) {
    const auto first_new = std::ranges::find_if_not(
        request.block_ids, [&](std::uint64_t id) { return seen.contains(id); });
    prompts_.push_back({.tokens = scaled(request.input_tokens, input.schedule.scale),
                        .blocks = std::ssize(request.block_ids),
                        .known = first_new - request.block_ids.begin()});
    seen.insert(request.block_ids.begin(), request.block_ids.end());
  }
}

void PrefixHits::Sums::add(std::int64_t more_blocks, std::int64_t more_tokens) {
  requests += more_tokens > 0 ? 1 : 0;
  blocks += more_blocks;
  tokens += more_tokens;
}

// The last token of a prompt is computed always, so that the whole of it is never served.
void PrefixHits::count(std::size_t request, std::int64_t tokens) {
  Prompt& prompt = prompts_[request];
  if (std::exchange(prompt.counted, true)) return;
  ++requests_;
  blocks_ += prompt.blocks;
  tokens_ += prompt.tokens;
  hit_.add(std::min(prompt.blocks, tokens / block_), tokens);
  best_.add(prompt.known, std::clamp<std::int64_t>(prompt.tokens - 1, 0, prompt.known * block_));
}

std::vector<Figure> PrefixHits::figures(const std::string& name) const {
  const auto text = [&](const char* what) { return name + what; };
  return {
      {text("requests"), requests_},
      {text("requests that hit"), hit_.requests, Fold::kSum, text("requests")},
      {text("requests that hit at best"), best_.requests, Fold::kSum, text("requests")},
      {text("prompt blocks"), blocks_},
      {text("prompt blocks hit"), hit_.blocks, Fold::kSum, text("prompt blocks")},
      {text("prompt blocks hit at best"), best_.blocks, Fold::kSum, text("prompt blocks")},
      {text("prompt tokens"), tokens_},
      {text("prompt tokens hit"), hit_.tokens, Fold::kSum, text("prompt tokens")},
      {text("prompt tokens hit at best"), best_.tokens, Fold::kSum, text("prompt tokens")},
  };
}

}  // namespace kvo::replay
