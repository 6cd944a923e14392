#include "traces/schedule.hpp"

#include <algorithm>
#include <utility>

namespace kvo::traces {

std::int64_t scaled(std::int64_t tokens, std::int64_t scale) {
  return tokens / scale + (tokens % scale != 0 ? 1 : 0);
}

Schedule::Schedule(std::span<const Request> requests, const SchedulePolicy& policy,
                   std::uint64_t seed)
    : requests_(requests),
      policy_(policy),
      random_(seed),
      slots_(static_cast<std::size_t>(policy.max_running)) {
  for (std::size_t i = 0; i < requests.size(); ++i) waiting_.push_back(i);
  if (!requests.empty()) now_us_ = requests.front().arrival_us;
}

std::optional<Action> Schedule::next() {
  while (actions_.empty()) {
    if (idle() && waiting_.empty()) return std::nullopt;
    step();
  }
  const Action action = actions_.front();
  actions_.pop_front();
  return action;
}

// One slot's turn: actions are made one turn at a time, so that a failed append is known before the
// next sequence runs.
void Schedule::step() {
  if (next_slot_ == 0 && !std::exchange(admitted_, true) && admit()) return;
  const auto slot = static_cast<std::int64_t>(next_slot_);
  if (auto& sequence = slots_[next_slot_]) {
    run(slot, *sequence);
    acted_ = true;
  }
  if (++next_slot_ < slots_.size()) return;
  if (std::exchange(acted_, false)) push(ActionKind::kStep, 0);
  next_slot_ = 0;
  admitted_ = false;
  now_us_ += policy_.step_us;
}

// True if a sequence begins: what it finds in its slot is known only after that.
bool Schedule::admit() {
  if (idle()) {
    may_admit_ = true;
    now_us_ = std::max(now_us_, requests_[waiting_.front()].arrival_us);
  }
  for (std::size_t slot = 0; slot < slots_.size() && may_admit_ && !waiting_.empty(); ++slot) {
    if (slots_[slot]) continue;
    const std::size_t index = waiting_.front();
    const Request& request = requests_[index];
    if (request.arrival_us > now_us_) break;
    waiting_.pop_front();
    const auto number = static_cast<std::int64_t>(index) + 1;
    slots_[slot] =
        Running{.request = index,
                .prompt = scaled(request.input_tokens, policy_.scale),
                .answer = scaled(request.output_tokens, policy_.scale),
                .cancelled = policy_.cancel_every > 0 && number % policy_.cancel_every == 0};
    push(ActionKind::kBegin, static_cast<std::int64_t>(slot));
  }
  return !actions_.empty();
}

const Request& Schedule::running(std::int64_t slot) const {
  return requests_[slots_[static_cast<std::size_t>(slot)].value().request];
}

void Schedule::skip(std::int64_t slot, std::int64_t tokens) {
  Running& sequence = slots_[static_cast<std::size_t>(slot)].value();
  sequence.prompt -= tokens;
  sequence.length += tokens;
}

void Schedule::give_up(std::int64_t slot) {
  if (!slots_[static_cast<std::size_t>(slot)]) return;
  ++given_up_;
  end(slot);
}

void Schedule::run(std::int64_t slot, Running& sequence) {
  if (sequence.prompt > 0 && sequence.cancelled && sequence.length > 0) {
    end(slot);
    return;
  }
  if (sequence.prompt > 0) {
    const std::int64_t chunk = std::min(sequence.prompt, policy_.chunk_tokens);
    push(ActionKind::kAppend, slot, chunk);
    sequence.prompt -= chunk;
    sequence.length += chunk;
    if (sequence.prompt == 0) push(ActionKind::kRead, slot);
    return;
  }
  if (sequence.answer > 0) {
    decode(slot, sequence);
    return;
  }
  push(ActionKind::kRead, slot);
  end(slot);
}

void Schedule::decode(std::int64_t slot, Running& sequence) {
  ++sequence.decoded;
  std::int64_t accepted = 1;
  if (policy_.draft_every > 0 && sequence.decoded % policy_.draft_every == 0) {
    push(ActionKind::kMark, slot);
    push(ActionKind::kAppend, slot, policy_.draft_tokens);
    const auto most = std::min(sequence.answer, policy_.draft_tokens);
    accepted = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most) + 1));
    if (accepted < policy_.draft_tokens)
      push(ActionKind::kTruncate, slot, sequence.length + accepted);
  } else {
    push(ActionKind::kAppend, slot, 1);
  }
  sequence.length += accepted;
  sequence.answer -= accepted;
  if (sequence.decoded % policy_.read_every == 0) push(ActionKind::kRead, slot);
}

void Schedule::append_failed(std::int64_t slot) {
  auto& sequence = slots_[static_cast<std::size_t>(slot)];
  if (!sequence) return;
  actions_.clear();
  const auto running = std::ranges::count_if(slots_, [](const auto& s) { return s.has_value(); });
  if (running > 1) {
    ++preempted_;
    waiting_.push_front(sequence->request);
  } else {
    ++given_up_;
  }
  end(slot);
  may_admit_ = false;
}

void Schedule::end(std::int64_t slot) {
  slots_[static_cast<std::size_t>(slot)].reset();
  push(ActionKind::kEnd, slot);
  may_admit_ = true;
}

void Schedule::push(ActionKind kind, std::int64_t slot, std::int64_t tokens) {
  actions_.push_back({kind, slot, tokens});
}

bool Schedule::idle() const {
  return std::ranges::none_of(slots_, [](const auto& slot) { return slot.has_value(); });
}

}  // namespace kvo::traces
