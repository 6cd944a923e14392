// Requests as operations of prefix.radix: admit, extend by chunks of the prompt with a checkpoint
// behind each, extend by decoded tokens, finish; properties/prefix/lowering.hpp has the policy.
//
// A preempted request is finished without being filed. There are no drafts: a row is never cut.
// Policy of eviction, pairs, sorting and events differ from case to case. A row is the tree's in
// front, which a checkpoint may put in the place of the request's own slots (PX-87); so each look
// shows the row first, and what it shows is judged.
#include <algorithm>
#include <array>
#include <utility>

#include "properties/prefix/lowering.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::prefix {
namespace {

using replay::Lowering;
using replay::LoweringInput;
using replay::Turn;

RadixConfig radix_config(const LoweringInput& input, bool paged) {
  constexpr std::array kPolicies{Policy::kLru,  Policy::kLfu,      Policy::kSlru, Policy::kFifo,
                                 Policy::kFilo, Policy::kPriority, Policy::kMru};
  RadixConfig config{
      .policy =
          kPolicies.at((drawn(input, kPolicies.size()) + kPolicies.size() - 1) % kPolicies.size()),
      .page_size = paged ? input.policy.block_size : 1};
  config.eagle = drawn(input, 5) == 2;
  config.events = !config.eagle && drawn(input, 3) == 1;
  config.need_sort = drawn(input, 4) >= 2;
  const bool ample = paged ? drawn(input, 2) == 0 : drawn(input, 2) == 1;
  // A request that is alone needs a page more than it fills, and asks for another one (PX-86).
  const std::int64_t least = input.longest_sequence() + 1 + 3 * config.page_size;
  const std::int64_t wanted = std::min(kMostPlaces, std::max(least, pool_tokens(input, ample)));
  config.slots = replay::scaled(wanted, config.page_size) * config.page_size;
  return config;
}

class RadixStream final : public PrefixStream {
 public:
  RadixStream(const LoweringInput& input, bool paged)
      : PrefixStream(input.without_drafts(), paged ? "pages: " : "tokens: ", places(input, paged)),
        config_(radix_config(input, paged)) {}

 protected:
  void make(std::int64_t slot) override {
    constexpr std::int64_t kPriorities = 3;
    FileRequest made{number(slot), text(slot).tokens()};
    if (config_.policy == Policy::kPriority) made.priority = number(slot) % kPriorities;
    emit(std::move(made));
  }
  void look_up(std::int64_t slot) override {
    emit_then(Admit{number(slot)}, [this, slot](const Observation& seen) {
      if (!seen.error) (void)found(slot, seen.as<Admit::Returns>().length);
    });
  }

  // A token that has joined the request before a refusal does not join it again.
  void ask(std::int64_t slot, const Turn& turn) override {
    const Running& own = at(slot);
    Extend wanted{number(slot), turn.append};
    if (text(slot).size() == own.rows) {
      wanted.append = prompts().fresh(1);
      text(slot).add(wanted.append);
    }
    wanted.tokens = std::min(turn.append, text(slot).size() - own.rows);
    emit_then(std::move(wanted), [this, slot](const Observation& seen) {
      if (seen.error) return refused(slot);
      extended(slot, seen.as<Extend::Returns>());
    });
  }
  // If a slot has another row than the request's, the row once more, with -1 there.
  void look(std::int64_t slot) override {
    emit_then(ShowRow{number(slot)}, [this, slot](const Observation& seen) {
      if (seen.error) return;
      ShowRow::Returns row = seen.as<ShowRow::Returns>();
      row.slots.resize(static_cast<std::size_t>(at(slot).rows), -1);
      for (std::int64_t position = 0; position < at(slot).rows; ++position)
        if (std::int64_t& place = row.slots[static_cast<std::size_t>(position)];
            !placed().holds(place, text(slot).tag(position)))
          place = -1;
      if (row.slots != seen.as<ShowRow::Returns>().slots)
        emit(ShowRow{number(slot)}, std::move(row));
    });
  }
  void leave(std::int64_t slot) override {
    const Running& own = at(slot);
    if (own.let_in)
      emit(Finish{number(slot), !own.preempted});
    else
      emit(Withdraw{number(slot)});
    if (config_.events) emit(TakeEvents{});
  }
  void close() override { emit(ShowTree{}); }

 private:
  static std::int64_t places(const LoweringInput& input, bool paged) {
    const RadixConfig config = radix_config(input, paged);
    return config.slots + 2 * config.page_size;
  }

  void extended(std::int64_t slot, const Extend::Returns& got) {
    evicted(std::ssize(got.nodes));
    const bool first = !at(slot).let_in;
    const bool prompt = !decodes(slot);
    const Turn turn = granted(slot);
    Running& own = at(slot);
    for (const std::int64_t place : got.slots.value_or(Ids()))
      if (own.rows < text(slot).size()) placed().write(place, text(slot).tag(own.rows++));
    if (prompt) emit(Checkpoint{number(slot)});
    if (turn.read || first) look(slot);
  }

  RadixConfig config_;
};

}  // namespace

std::vector<Lowering> radix_lowerings() {
  return {prefix_lowering<RadixStream, radix_config, false>(radix_kind(), "tokens", 1.2e4, 16),
          prefix_lowering<RadixStream, radix_config, true>(radix_kind(), "pages", 1.2e4, 4)};
}

}  // namespace kvo::prefix
