#include "properties/replay/lowering.hpp"

#include <algorithm>
#include <functional>

namespace kvo::replay {

std::int64_t LoweringInput::longest_sequence() const {
  std::int64_t longest = 1;
  for (const Request& request : requests) longest = std::max(longest, whole(request));
  return longest + schedule.draft_tokens;
}

std::int64_t LoweringInput::tokens() const {
  constexpr std::int64_t kEnough = std::int64_t{1} << 62U;
  std::int64_t sum = 0;
  for (const Request& request : requests) sum = std::min(kEnough, sum + whole(request));
  return sum;
}

LoweringInput LoweringInput::with_slots(std::int64_t most) const {
  LoweringInput few = *this;
  few.schedule.max_running = std::min(schedule.max_running, most);
  return few;
}

LoweringInput LoweringInput::without_drafts() const {
  LoweringInput plain = *this;
  plain.schedule.draft_every = 0;
  return plain;
}

Demand demand_of(const LoweringInput& input, std::int64_t block_size) {
  std::vector<std::int64_t> blocks;
  for (const Request& request : input.requests)
    blocks.push_back(scaled(input.whole(request) + input.schedule.draft_tokens, block_size));
  std::ranges::sort(blocks, std::greater());
  Demand demand{.longest = blocks.empty() ? 1 : blocks.front()};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    demand.all += blocks[i];
    if (i < static_cast<std::size_t>(input.schedule.max_running)) demand.most += blocks[i];
  }
  return demand;
}

std::string Lowering::full_name() const {
  return kind->name() + (name.empty() ? "" : " " + std::string(name));
}

double usual_cost(const LoweringInput& input) {
  constexpr double kMostTokens = 1e7;
  constexpr double kLongest = 0x1p20;
  constexpr double kMostRows = 1e9;
  const SchedulePolicy& policy = input.schedule;
  // Rows that reads show and drafts copy: what grows with the square of an answer.
  double rows = 0;
  for (const Request& request : input.requests) {
    const auto answer = static_cast<double>(input.answer(request));
    const double reads = 2 + answer / static_cast<double>(policy.read_every);
    const double drafts =
        policy.draft_every > 0 ? answer / static_cast<double>(policy.draft_every) : 0;
    rows += (reads + 2 * drafts) * (static_cast<double>(input.prompt(request)) + answer);
  }
  const std::int64_t longest = input.longest_sequence() - policy.draft_tokens;
  return std::max({static_cast<double>(input.tokens()) / kMostTokens,
                   static_cast<double>(longest) / kLongest, rows / kMostRows});
}

std::function<double(const LoweringInput&)> cost_by(double other_calls, double rows_a_request) {
  return [=](const LoweringInput& input) {
    constexpr std::size_t kMostRequests = 12'000;
    double rows = 0;
    for (const Request& request : input.requests) {
      const auto prompt = static_cast<double>(input.prompt(request));
      const auto answer = static_cast<double>(input.answer(request));
      rows += (other_calls + answer + prompt / static_cast<double>(input.schedule.chunk_tokens)) *
              (prompt + answer);
    }
    return rows /
           (rows_a_request * static_cast<double>(std::min(input.requests.size(), kMostRequests)));
  };
}

std::int64_t scale_of(const Lowering& lowering, const LoweringInput& input) {
  constexpr double kElements = 16;
  const LoweringPolicy& policy = input.policy;
  const double larger =
      std::max(1.0, static_cast<double>(policy.num_layers) * static_cast<double>(policy.num_heads) *
                        static_cast<double>(policy.head_dim) / kElements);
  LoweringInput scaled = input;
  scaled.schedule.scale = 1;
  while (scaled.schedule.scale < traces::kMaxTokens && lowering.cost(scaled) * larger > 1)
    scaled.schedule.scale *= 2;
  return scaled.schedule.scale;
}

}  // namespace kvo::replay
