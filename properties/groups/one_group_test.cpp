// What prefix.blocks is, is groups.blocks with one group (GR-5): random scripts of the one, on
// both.
#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "properties/contract_parts.hpp"
#include "reference/groups/operations.hpp"
#include "reference/prefix/operations.hpp"
#include "reference/subjects.hpp"

namespace kvo::groups {
namespace {

Config config_of(const prefix::BlocksConfig& one) {
  Group group{.block_size = one.block_size};
  if (one.attention == prefix::Attention::kSlidingWindow)
    group = {
        .kind = GroupKind::kSlidingWindow, .block_size = one.block_size, .window = *one.window};
  if (one.attention == prefix::Attention::kChunkedLocal)
    group = {.kind = GroupKind::kChunkedLocal, .block_size = one.block_size, .chunk = *one.chunk};
  return {.num_blocks = one.num_blocks,
          .groups = {group},
          .hash_block = one.block_size,
          .enable_caching = one.enable_caching,
          .max_model_len = one.max_model_len,
          .max_in_flight = one.max_in_flight,
          .eagle = one.eagle,
          .hash_lookahead = one.hash_lookahead,
          .watermark = one.watermark,
          .retention = one.retention,
          .events = one.events};
}

// The operation of the other contract.
Op translated(const Op& op) {
  if (const auto* made = op.as<prefix::MakeRequest>())
    return Op::of(MakeRequest{.request = made->request,
                              .tokens = made->tokens,
                              .salt = made->salt,
                              .lora = made->lora,
                              .lora_path = made->lora_path,
                              .skip_reading = made->skip_reading});
  if (const auto* match = op.as<prefix::MatchBlocks>())
    return Op::of(Match{match->request, match->max_length});
  if (const auto* slots = op.as<prefix::Allocate>())
    return Op::of(Allocate{
        .request = slots->request,
        .tokens = slots->tokens,
        .hit_blocks = slots->hit_blocks ? std::optional(Tables{*slots->hit_blocks}) : std::nullopt,
        .hit_tokens = slots->hit_tokens,
        .external = slots->external,
        .lookahead = slots->lookahead,
        .delay_caching = slots->delay_caching,
        .full_sequence = slots->full_sequence,
        .reserved = slots->reserved,
        .others_scheduled = slots->others_scheduled});
  if (const auto* skip = op.as<prefix::Skip>()) return Op::of(Skip{skip->request, skip->computed});
  if (const auto* key = op.as<prefix::LookUp>()) return Op::of(LookUp{key->key, {0}});
  if (const auto* table = op.as<prefix::ShowTable>()) return Op::of(ShowTables{table->request});
  if (op.as<prefix::ShowStatistics>() != nullptr) return Op::of(ShowStatistics{});
  if (op.as<prefix::TakeEvents>() != nullptr) return Op::of(TakeEvents{});
  if (op.as<prefix::ShowBlocks>() != nullptr) return Op::of(ShowBlocks{});
  return op;
}

prefix::ShowBlocksReturns pool_of(const ShowBlocksReturns& shown) {
  prefix::ShowBlocksReturns pool{.free = shown.free, .queue = shown.queue, .refs = shown.refs};
  for (const auto& keys : shown.keys)
    pool.keys.emplace_back(keys.has_value() ? std::optional(keys->front()[0]) : std::nullopt);
  for (const ShownHolders& one : shown.cached) pool.cached.push_back({one.key, one.blocks});
  return pool;
}

// The answer in the terms of prefix.blocks.
Observation answer_of(const Observation& seen) {
  if (seen.error) return {.error = seen.error};
  const auto of = [](auto returns) {
    return Observation{.returns = Record::of(std::move(returns))};
  };
  if (const auto* hit = seen.returns.get_if<MatchReturns>())
    return of(prefix::MatchBlocksReturns{hit->blocks[0], hit->length});
  if (const auto* slots = seen.returns.get_if<Allotment>())
    return of(prefix::AllottedBlocks{slots->blocks[0], slots->evicted});
  if (const auto* found = seen.returns.get_if<LookUpReturns>())
    return of(prefix::LookUpReturns{found->blocks.has_value() ? std::optional((*found->blocks)[0])
                                                              : std::nullopt});
  if (const auto* tables = seen.returns.get_if<TablesReturns>())
    return of(BlocksOnly{tables->blocks[0]});
  if (const auto* sums = seen.returns.get_if<Statistics>())
    return of(BlocksStatistics{sums->requests, sums->queries, sums->hits, sums->preempted_requests,
                               sums->preempted_queries, sums->preempted_hits, sums->reset});
  if (const auto* taken = seen.returns.get_if<TakeEventsReturns>()) {
    prefix::TakeEventsReturns events;
    for (const ShownEvent& one : taken->events)
      events.events.push_back({one.kind, one.keys, one.parent, one.tokens, one.block_size});
    return of(events);
  }
  if (const auto* pool = seen.returns.get_if<ShowBlocksReturns>()) return of(pool_of(*pool));
  return seen;
}

// In profile original: what documented changes beyond contract prefix is of several groups (GR-22,
// GR-39). A boundary of 0 is none here, and was never recorded there. What a caller must not do is
// told apart by other rules, so a case ends there.
TEST(OneGroup, AnswersAsPrefixBlocks) {
  const Subject one = prefix::references()[0];
  const Subject other = references()[0];
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    GeneratedCase drawn =
        prefix::blocks_generator().make({.seed = seed, .profile = Profile::kOriginal});
    drawn.ops->follow(one, drawn.setup, Scale::kSmall);
    const auto config = config_of(drawn.setup.config_as<prefix::BlocksConfig>());
    auto want = one.open(drawn.setup);
    auto got = other.open({.profile = Profile::kOriginal, .config = Record::of(config)});
    Probe probe;
    if (!want || !got || (*got)->apply(Op::of(ShowSetup{}), probe).error) continue;
    for (int left = 60; left > 0; --left) {
      auto op = drawn.ops->next();
      if (!op) break;
      if (const auto* set = op->as<prefix::SetRequest>(); set != nullptr && set->boundary == 0) {
        prefix::SetRequest without = *set;
        without.boundary.reset();
        op = Op::of(without);
      }
      const Observation wanted = (*want)->apply(*op, probe);
      const Observation seen = answer_of((*got)->apply(translated(*op), probe));
      if (wanted.failed_with(Code::kPrecondition)) break;
      const auto difference = observation_difference(wanted, seen);
      ASSERT_FALSE(difference) << "seed " << seed << ": " << op_text(*op) << ": "
                               << difference->text();
      ++compared;
    }
  }
  EXPECT_GT(compared, 5'000U);
}

}  // namespace
}  // namespace kvo::groups
