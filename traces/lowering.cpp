#include "traces/lowering.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "traces/lower_kinds.hpp"

namespace kvo::traces {
namespace {

constexpr std::string_view kPreempted = "sequence preempted for want of room";

}  // namespace

std::int64_t LoweringInput::longest_sequence() const {
  std::int64_t longest = 1;
  for (const Request& request : requests)
    longest = std::max(longest, scaled(request.input_tokens, schedule.scale) +
                                    scaled(request.output_tokens, schedule.scale));
  return longest + schedule.draft_tokens;
}

std::int64_t scale_for(const std::function<bool(std::int64_t scale)>& fits) {
  std::int64_t scale = 1;
  while (scale < kMaxTokens && !fits(scale)) scale *= 2;
  return scale;
}

std::int64_t tokens_at(std::span<const Request> requests, std::int64_t scale) {
  std::int64_t sum = 0;
  for (const Request& request : requests)
    sum += scaled(request.input_tokens, scale) + scaled(request.output_tokens, scale);
  return sum;
}

std::int64_t scale_of(const Lowering& lowering, const LoweringInput& input) {
  constexpr std::int64_t kMostTokens = 10'000'000;
  if (lowering.scale != nullptr) return lowering.scale(input);
  return scale_for(
      [&](std::int64_t scale) { return tokens_at(input.requests, scale) <= kMostTokens; });
}

std::span<const Lowering> lowerings() {
  static const std::array kLowerings{layered_lowering(), contiguous_lowering(), paged_lowering(),
                                     tensor_lowering(),  device_lowering(),     tracing_lowering(),
                                     causal_lowering(),  swa_lowering(),        swa_mem_lowering(),
                                     chunked_lowering(), wrapper_lowering()};
  return kLowerings;
}

const Lowering* lowering_of(const CacheKind& kind) {
  for (const Lowering& lowering : lowerings())
    if (lowering.kind == &kind) return &lowering;
  return nullptr;
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
    const auto action = schedule_.next();
    if (!action) return std::nullopt;
    lower(*action);
  }
  Queued queued = std::move(queue_.front());
  queue_.pop_front();
  expected_ = std::move(queued.expected);
  return std::move(queued.op);
}

void LoweredOps::saw(const Op& op, const Observation& seen, Labels& labels) {
  answered(op, seen, labels);
  if (!seen.error) return;
  const auto slot = appends_to(op);
  if (!slot) return;
  // The other layers of this append are not tried.
  queue_.clear();
  schedule_.append_failed(*slot);
  labels.insert(kPreempted);
}

void LoweredOps::lower(const Action& action) {
  switch (action.kind) {
    case ActionKind::kBegin:
      return begin(action.slot);
    case ActionKind::kAppend:
      return append(action.slot, action.tokens);
    case ActionKind::kMark:
      return mark(action.slot);
    case ActionKind::kTruncate:
      return truncate(action.slot, action.tokens);
    case ActionKind::kRead:
      return read(action.slot);
    case ActionKind::kEnd:
      return end(action.slot);
    case ActionKind::kStep:
      return step();
  }
}

}  // namespace kvo::traces
