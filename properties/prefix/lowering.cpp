#include "properties/prefix/lowering.hpp"

#include <algorithm>
#include <utility>

#include "properties/contract_parts.hpp"
#include "reference/contract/values/random.hpp"

namespace kvo::prefix {

using replay::LoweringInput;
using replay::Step;
using replay::Turn;

// Tags have the highest bit, those of spoilt rows do not.
void Text::add(std::span<const Token> tokens) {
  constexpr std::uint64_t kTagged = std::uint64_t{1} << 63U;
  for (const Token token : tokens) {
    const std::uint64_t before = tags_.empty() ? 0 : tags_.back();
    tokens_.push_back(token);
    tags_.push_back(case_seed(before, static_cast<std::uint64_t>(token)) | kTagged);
  }
}

void PlacedRows::write(std::int64_t place, std::uint64_t tag) {
  if (place >= 0 && place < std::ssize(tags_)) tags_[static_cast<std::size_t>(place)] = tag;
}

bool PlacedRows::holds(std::int64_t place, std::uint64_t tag) const {
  return place >= 0 && place < std::ssize(tags_) && tags_[static_cast<std::size_t>(place)] == tag;
}

std::int64_t pool_tokens(const LoweringInput& input, bool ample) {
  const replay::Demand demand = replay::demand_of(input, 1);
  const std::int64_t wanted = ample ? demand.all : demand.most;
  return std::min(kMostPlaces,
                  std::max(input.longest_sequence(), wanted / 100 * input.policy.pool_percent));
}

PrefixStream::PrefixStream(const LoweringInput& input, std::string name, std::int64_t places)
    : Engine(input),
      name_(std::move(name)),
      prompts_(input.requests, input.schedule.scale),
      hits_(input, prompts_.block()),
      placed_(places),
      running_(static_cast<std::size_t>(input.schedule.max_running)),
      left_(std::ssize(input.requests)) {
  schedule().keep_decoded();
}

std::vector<Figure> PrefixStream::figures() const {
  std::vector<Figure> all = hits_.figures(name_);
  all.push_back({name_ + "preemptions", preemptions_});
  all.push_back({name_ + "tokens of resumed requests", resumed_tokens_});
  all.push_back({name_ + "tokens of resumed requests hit", resumed_hit_, Fold::kSum,
                 name_ + "tokens of resumed requests"});
  all.push_back({name_ + "evictions", evicted_});
  return all;
}

void PrefixStream::lower(Step& step) {
  if (!step.begins.empty()) {
    begin(step.begins.front());
    step.begins.pop_front();
    return;
  }
  const Turn turn = step.turns.front();
  Running& own = at(turn.slot);
  if (turn.end) {
    // What the last look shows is judged before the request is gone.
    if (turn.read && own.let_in && !std::exchange(own.looked_at, true)) return look(turn.slot);
    step.turns.pop_front();
    return end(turn);
  }
  if (!std::exchange(own.looked_up, true)) {
    if (own.prompt > 0) return look_up(turn.slot);
    hits_.count(own.request, 0);
  }
  ask(turn.slot, turn);
}

void PrefixStream::begin(std::int64_t slot) {
  const replay::Request& request = schedule().running(slot);
  const std::size_t index = request_of(slot);
  const bool unseen = !texts_.contains(index);
  if (unseen) texts_[index] = Text(prompts_.prompt(request));
  at(slot) = {.request = index,
              .prompt = input().prompt(request) + schedule().decoded_before(slot)};
  order_.push_back(slot);
  if (unseen) make(slot);
}

bool PrefixStream::found(std::int64_t slot, std::int64_t tokens) {
  Running& own = at(slot);
  if (tokens < 0 || tokens > text(slot).size()) return false;
  hits_.count(own.request, tokens);
  if (tokens > 0) reach(kHit);
  if (const auto before = preempted_.find(own.request); before != preempted_.end()) {
    resumed_tokens_ += before->second;
    resumed_hit_ += std::min(before->second, tokens);
    if (tokens > 0) reach(kResumed);
  }
  own.rows = own.hit = tokens;
  // One that was found in full has its last token computed anew, as far as the schedule can tell.
  if (tokens > 0) schedule().skip(slot, std::min(tokens, own.prompt - 1));
  return true;
}

Turn PrefixStream::granted(std::int64_t slot) {
  Step& step = schedule().step();
  const auto turn = std::ranges::find(step.turns, slot, &Turn::slot);
  const Turn done = *turn;
  step.turns.erase(turn);
  at(slot).let_in = true;
  return done;
}

void PrefixStream::refused(std::int64_t slot) {
  std::int64_t victim = slot;
  if (at(slot).let_in) {
    victim = *std::ranges::find_if(order_.rbegin(), order_.rend(), [&](std::int64_t other) {
      return at(other).let_in && !at(other).preempted;
    });
    reach(kThrownOut);
    ++preemptions_;
  } else {
    reach(kWaits);
  }
  const std::uint64_t before = schedule().given_up();
  at(victim).preempted = true;
  preempt(victim);
  at(victim).given_up = schedule().given_up() > before;
}

void PrefixStream::evicted(std::int64_t units) {
  evicted_ += units;
  if (units > 0) reach(kEvicted);
}

void PrefixStream::end(const Turn& turn) {
  const Running own = at(turn.slot);
  if (!turn.read && !own.preempted) reach(kCancelled);
  leave(turn.slot);
  std::erase(order_, turn.slot);
  if (own.preempted && !own.given_up) {
    if (own.let_in) preempted_[own.request] = own.rows;
    return;
  }
  texts_.erase(own.request);
  preempted_.erase(own.request);
  if (--left_ == 0) close();
}

std::vector<replay::Lowering> lowerings() {
  std::vector<replay::Lowering> all = blocks_lowerings();
  for (const replay::Lowering& radix : radix_lowerings()) all.push_back(radix);
  return all;
}

}  // namespace kvo::prefix
