#include "properties/replay/prompt_tokens.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <boost/unordered/unordered_flat_set.hpp>

#include "properties/replay/schedule.hpp"

namespace kvo::replay {

using traces::Request;

PromptTokens::PromptTokens(std::span<const Request> requests, std::int64_t scale) : scale_(scale) {
  for (const Request& request : requests) {
    if (request.block_ids.empty()) continue;
    const std::int64_t block = scaled(request.input_tokens, std::ssize(request.block_ids));
    block_ = std::max(block_, scaled(block, scale));
  }
}

std::int64_t PromptTokens::length(const Request& request) const {
  return scaled(request.input_tokens, scale_);
}

// Starts over where tokens end: a case has fewer.
std::int32_t PromptTokens::next() {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  return static_cast<std::int32_t>(1 + last_++ % kMost);
}

Tokens PromptTokens::fresh(std::int64_t count) {
  Tokens tokens;
  while (std::ssize(tokens) < count) tokens.push_back(next());
  return tokens;
}

Tokens PromptTokens::prompt(const Request& request) {
  if (request.block_ids.empty()) return fresh(length(request));
  Tokens tokens;
  for (const std::uint64_t id : request.block_ids) {
    const std::int64_t wanted = std::min(block_, length(request) - std::ssize(tokens));
    Tokens& block = blocks_[id];
    while (std::ssize(block) < wanted) block.push_back(next());
    tokens.insert(tokens.end(), block.begin(), block.begin() + wanted);
  }
  return tokens;
}

std::int64_t PromptTokens::known(const Request& request) const {
  std::int64_t sum = 0;
  Node node = 0;
  for (const std::uint64_t id : request.block_ids) {
    const auto below = nodes_.find({node, id});
    if (below == nodes_.end()) break;
    node = below->second;
    const std::int64_t same = std::min(known_[node], length(request) - sum);
    sum += same;
    if (same < block_) break;
  }
  return sum;
}

void PromptTokens::learn(const Request& request, std::int64_t tokens) {
  Node node = 0;
  for (const std::uint64_t id : request.block_ids) {
    if (tokens <= 0) break;
    const auto [below, unseen] = nodes_.try_emplace({node, id}, known_.size());
    if (unseen) known_.push_back(0);
    node = below->second;
    known_[node] = std::max(known_[node], std::min(block_, tokens));
    tokens -= block_;
  }
}

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
