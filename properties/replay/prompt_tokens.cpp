#include "properties/replay/prompt_tokens.hpp"

#include <algorithm>
#include <limits>

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

}  // namespace kvo::replay
