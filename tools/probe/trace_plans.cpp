#include "tools/probe/trace_plans.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "properties/replay/prompt_tokens.hpp"
#include "properties/replay/schedule.hpp"
#include "tools/reports/quantities.hpp"

namespace kvo::tools {

using traces::Request;

TracePlans::TracePlans(const probe::Tables& tables, std::vector<Request> requests,
                       const TraceLimits& limits, std::uint64_t seed)
    : drawer_(tables), requests_(std::move(requests)), limits_(limits), seed_(seed) {
  std::ranges::stable_sort(requests_, {}, &Request::arrival_us);
  if (limits_.scale == 0) {
    limits_.scale = 1;
    while (std::ranges::any_of(requests_,
                               [&](const Request& one) { return length(one) > limits_.longest; }))
      limits_.scale *= 2;
  }
  block_ = static_cast<std::size_t>(replay::PromptTokens(requests_, limits_.scale).block());
}

// One token begins a text, and one chooses how far the answer reads.
std::size_t TracePlans::length(const Request& request) const {
  return std::max<std::size_t>(
      2, static_cast<std::size_t>(replay::scaled(request.input_tokens, limits_.scale)));
}

ProbeRequest TracePlans::request(const Request& request) const {
  constexpr std::uint64_t kOfABlock = 0;
  constexpr std::uint64_t kOfARequest = 1;
  const std::size_t size = length(request);
  ProbeTokens prompt{probe::kBegin};
  std::uint64_t text = 0;  // what the last tokens are drawn from
  for (std::size_t block = 0; prompt.size() < size; ++block) {
    const bool shared = block < request.block_ids.size();
    text = shared ? probe::mix({seed_, kOfABlock, request.block_ids[block]})
                  : probe::mix({seed_, kOfARequest, request.line});
    traces::Random random(text);
    const std::size_t end = shared ? std::min(size, (block + 1) * block_) : size;
    while (prompt.size() < end) prompt.push_back(drawer_.token(prompt.size(), random));
  }
  traces::Random random(probe::mix({text, size}));
  prompt.back() = drawer_.last(size, random);
  const auto asked = static_cast<std::size_t>(replay::scaled(request.output_tokens, limits_.scale));
  return {std::move(prompt), std::clamp<std::size_t>(asked, 1, limits_.tokens)};
}

std::optional<ProbePlan> TracePlans::next() {
  constexpr std::size_t kRequestsOfAPlan = 32;
  ProbePlan plan{.kind = "trace", .waves = {{}}, .at_once = limits_.at_once, .number = plans_++};
  auto& wave = plan.waves.front();
  for (; sent_ < requests_.size() && wave.size() < kRequestsOfAPlan; ++sent_) {
    const Request& one = requests_[sent_];
    if (one.input_tokens == 0)
      ++empty_;
    else if (length(one) > limits_.longest)
      ++too_long_;
    else
      wave.push_back(request(one));
  }
  if (wave.empty()) return std::nullopt;
  return plan;
}

std::vector<std::string> TracePlans::skipped() const {
  std::vector<std::string> skipped;
  if (too_long_ > 0)
    skipped.push_back(fmt::format("{} of the trace: more than {} of a prompt",
                                  count_text(too_long_, "request"),
                                  count_text(limits_.longest, "token")));
  if (empty_ > 0)
    skipped.push_back(
        fmt::format("{} of the trace: no token of a prompt", count_text(empty_, "request")));
  return skipped;
}

}  // namespace kvo::tools
