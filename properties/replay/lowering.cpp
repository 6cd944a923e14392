#include "properties/replay/lowering.hpp"

#include <algorithm>

namespace kvo::replay {

std::int64_t LoweringInput::longest_sequence() const {
  std::int64_t longest = 1;
  for (const Request& request : requests)
    longest = std::max(longest, scaled(request.input_tokens, schedule.scale) +
                                    scaled(request.output_tokens, schedule.scale));
  return longest + schedule.draft_tokens;
}

std::string Lowering::full_name() const {
  return kind->name() + (name.empty() ? "" : " " + std::string(name));
}

std::int64_t tokens_at(std::span<const Request> requests, std::int64_t scale) {
  constexpr std::int64_t kEnough = std::int64_t{1} << 62U;
  std::int64_t sum = 0;
  for (const Request& request : requests)
    sum = std::min(
        kEnough, sum + scaled(request.input_tokens, scale) + scaled(request.output_tokens, scale));
  return sum;
}

double rows_shown_at(std::span<const Request> requests, const SchedulePolicy& policy,
                     std::int64_t scale) {
  double rows = 0;
  for (const Request& request : requests) {
    const auto answer = static_cast<double>(scaled(request.output_tokens, scale));
    const double longest = static_cast<double>(scaled(request.input_tokens, scale)) + answer;
    const double reads = 2 + answer / static_cast<double>(policy.read_every);
    const double drafts =
        policy.draft_every > 0 ? answer / static_cast<double>(policy.draft_every) : 0;
    rows += (reads + 2 * drafts) * longest;
  }
  return rows;
}

double usual_cost(const LoweringInput& input) {
  constexpr double kMostTokens = 1e7;
  constexpr double kLongest = 0x1p20;
  constexpr double kMostRows = 1e9;
  const std::int64_t scale = input.schedule.scale;
  const std::int64_t longest = input.longest_sequence() - input.schedule.draft_tokens;
  return std::max({static_cast<double>(tokens_at(input.requests, scale)) / kMostTokens,
                   static_cast<double>(longest) / kLongest,
                   rows_shown_at(input.requests, input.schedule, scale) / kMostRows});
}

double cost_by(const LoweringInput& input, const Cost& cost) {
  constexpr std::size_t kMostRequests = 12'000;
  const double most =
      cost.rows_a_request * static_cast<double>(std::min(input.requests.size(), kMostRequests));
  const std::int64_t scale = input.schedule.scale;
  double rows = 0;
  for (const Request& request : input.requests) {
    const auto prompt = static_cast<double>(scaled(request.input_tokens, scale));
    const auto answer = static_cast<double>(scaled(request.output_tokens, scale));
    rows +=
        (cost.other_calls + answer + prompt / static_cast<double>(input.schedule.chunk_tokens)) *
        (prompt + answer);
  }
  return rows / most;
}

std::int64_t scale_of(const Lowering& lowering, const LoweringInput& input) {
  constexpr double kElements = 16;
  const LoweringPolicy& policy = input.policy;
  const double larger =
      std::max(1.0, static_cast<double>(policy.num_layers) * static_cast<double>(policy.num_heads) *
                        static_cast<double>(policy.head_dim) / kElements);
  const auto cost = lowering.cost != nullptr ? lowering.cost : usual_cost;
  LoweringInput scaled = input;
  scaled.schedule.scale = 1;
  while (scaled.schedule.scale < traces::kMaxTokens && cost(scaled) * larger > 1)
    scaled.schedule.scale *= 2;
  return scaled.schedule.scale;
}

std::pair<Tensor, Tensor> tagged_rows(std::span<const std::uint64_t> first_tags,
                                      std::int64_t width) {
  const Shape shape{static_cast<std::int64_t>(first_tags.size()) * width};
  std::pair<Tensor, Tensor> made{make_tensor(shape), make_tensor(shape)};
  const auto [keys, values] = std::pair(made.first.floats(), made.second.floats());
  std::size_t at = 0;
  for (const std::uint64_t first : first_tags) {
    for (std::int64_t i = 0; i < width; ++i, ++at) {
      keys[at] = tag(first + static_cast<std::uint64_t>(i));
      values[at] = -keys[at];
    }
  }
  return made;
}

LoweredOps::LoweredOps(const LoweringInput& input)
    : policy_(input.policy), schedule_(input.requests, input.schedule, input.seed) {}

std::optional<Op> LoweredOps::next() {
  while (queue_.empty()) {
    if (schedule_.step().empty() && !schedule_.next()) return std::nullopt;
    lower(schedule_.step());
  }
  Queued queued = std::move(queue_.front());
  queue_.pop_front();
  expected_ = std::move(queued.expected);
  return std::move(queued.op);
}

void LoweredOps::preempt(std::int64_t slot, Labels& labels) {
  queue_.clear();
  schedule_.preempt(slot);
  labels.insert(kPreempted);
}

void SequenceOps::lower(Step& step) {
  while (!step.begins.empty()) {
    begin(step.begins.front());
    step.begins.pop_front();
  }
  if (step.turns.empty()) return;
  const Turn turn = step.turns.front();
  step.turns.pop_front();
  if (turn.draft) save(turn.slot);
  if (turn.append > 0) append(turn.slot, turn.append);
  if (turn.rejected > 0) reject(turn.slot, turn.rejected);
  if (turn.read) read(turn.slot);
  if (turn.end) end(turn.slot);
}

}  // namespace kvo::replay
