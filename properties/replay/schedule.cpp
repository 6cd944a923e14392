#include "properties/replay/schedule.hpp"

#include <algorithm>
#include <limits>

namespace kvo::replay {

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

bool Schedule::next() {
  step_ = {};
  for (auto& sequence : slots_)
    if (sequence && sequence->ended) sequence.reset();
  if (idle()) {
    if (waiting_.empty()) return false;
    may_admit_ = true;
    now_us_ = std::max(now_us_, arrival_us(waiting_.front()));
  }
  admit();
  for (std::size_t slot = 0; slot < slots_.size(); ++slot)
    if (auto& sequence = slots_[slot])
      step_.turns.push_back(plan(static_cast<std::int64_t>(slot), *sequence));
  // Time ends where it cannot be told any more.
  now_us_ = std::min(now_us_, std::numeric_limits<std::int64_t>::max() - policy_.step_us);
  now_us_ += policy_.step_us;
  return true;
}

std::int64_t Schedule::arrival_us(std::size_t request) const {
  return requests_[request - request % static_cast<std::size_t>(policy_.burst)].arrival_us;
}

void Schedule::admit() {
  for (std::size_t slot = 0; slot < slots_.size() && may_admit_ && !waiting_.empty(); ++slot) {
    if (slots_[slot]) continue;
    const std::size_t index = waiting_.front();
    const Request& request = requests_[index];
    if (arrival_us(index) > now_us_) break;
    waiting_.pop_front();
    const auto number = static_cast<std::int64_t>(index) + 1;
    const auto known = decoded_.find(index);
    const std::int64_t decoded = known == decoded_.end() ? 0 : known->second;
    slots_[slot] =
        Running{.request = index,
                .prompt = scaled(request.input_tokens, policy_.scale) + decoded,
                .answer = scaled(request.output_tokens, policy_.scale) - decoded,
                .decoded_before = decoded,
                .cancelled = policy_.cancel_every > 0 && number % policy_.cancel_every == 0};
    step_.begins.push_back(static_cast<std::int64_t>(slot));
  }
}

Turn Schedule::plan(std::int64_t slot, Running& sequence) {
  Turn turn{.slot = slot};
  const bool cancelled = sequence.cancelled && sequence.prompt > 0 && sequence.length > 0;
  if (cancelled || (sequence.prompt == 0 && sequence.answer == 0)) {
    turn.read = !cancelled;
    turn.end = true;
    sequence.ended = true;
    may_admit_ = true;
  } else if (sequence.prompt > 0) {
    turn.append = std::min(sequence.prompt, policy_.chunk_tokens);
    sequence.prompt -= turn.append;
    sequence.length += turn.append;
    turn.read = sequence.prompt == 0;
  } else {
    plan_decode(turn, sequence);
  }
  return turn;
}

void Schedule::plan_decode(Turn& turn, Running& sequence) {
  ++sequence.decoded;
  turn.append = 1;
  if (policy_.draft_every > 0 && sequence.decoded % policy_.draft_every == 0) {
    const auto most = std::min(sequence.answer, policy_.draft_tokens);
    turn.draft = true;
    turn.append = policy_.draft_tokens;
    turn.rejected = turn.append -
                    static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most) + 1));
  }
  sequence.length += turn.append - turn.rejected;
  sequence.answer -= turn.append - turn.rejected;
  turn.read = sequence.decoded % policy_.read_every == 0;
}

void Schedule::skip(std::int64_t slot, std::int64_t tokens) {
  Turn& turn = *std::ranges::find(step_.turns, slot, &Turn::slot);
  Running& sequence = slots_[static_cast<std::size_t>(slot)].value();
  // The first chunk is planned anew.
  sequence.prompt += turn.append - tokens;
  sequence.length += tokens - turn.append;
  turn = plan(slot, sequence);
}

void Schedule::preempt(std::int64_t slot) {
  Running* const sequence = sequence_of(slot);
  if (sequence == nullptr) return;
  const auto other = [&](const Turn& turn) { return turn.slot != slot; };
  // What its turn would decode is planned, but not done.
  const auto planned = std::ranges::find(step_.turns, slot, &Turn::slot);
  if (sequence->decoded > 0 && planned != step_.turns.end())
    sequence->answer += planned->append - planned->rejected;
  end_now(slot);
  // Those whose end is still to come count as running.
  if (!idle() || std::ranges::any_of(step_.turns, other)) {
    ++preempted_;
    waiting_.push_front(sequence->request);
    if (keeps_decoded_) {
      const Request& request = requests_[sequence->request];
      decoded_[sequence->request] = scaled(request.output_tokens, policy_.scale) - sequence->answer;
    }
  } else {
    ++given_up_;
  }
  may_admit_ =
      std::ranges::any_of(step_.turns, [&](const Turn& turn) { return turn.end && other(turn); });
}

void Schedule::give_up(std::int64_t slot) {
  if (sequence_of(slot) == nullptr) return;
  ++given_up_;
  end_now(slot);
  may_admit_ = true;
}

void Schedule::end_now(std::int64_t slot) {
  slots_[static_cast<std::size_t>(slot)].value().ended = true;
  std::erase_if(step_.turns, [&](const Turn& turn) { return turn.slot == slot; });
  step_.turns.push_front({.slot = slot, .end = true});
}

const Request& Schedule::running(std::int64_t slot) const {
  return requests_[slots_[static_cast<std::size_t>(slot)].value().request];
}

std::int64_t Schedule::decoded_before(std::int64_t slot) const {
  return slots_[static_cast<std::size_t>(slot)].value().decoded_before;
}

Schedule::Running* Schedule::sequence_of(std::int64_t slot) {
  auto& sequence = slots_[static_cast<std::size_t>(slot)];
  return sequence && !sequence->ended ? &*sequence : nullptr;
}

bool Schedule::idle() const {
  return std::ranges::none_of(slots_, [](const auto& slot) { return slot && !slot->ended; });
}

}  // namespace kvo::replay
