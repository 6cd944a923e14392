// The metamorphic laws of contract `events`: EV-93.
#include "properties/campaign/metamorphic.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "properties/campaign/laws.hpp"
#include "properties/contract_parts.hpp"
#include "reference/events/operations.hpp"

namespace kvo::events {
namespace {

bool is_follower(const CacheKind& kind) {
  return kind.contract == "events";
}

// In profile original, what one engine does shows at another in trees, in maps that are probed, and
// in one map of keys for all pods (EV-95). These have none of them.
bool isolates(const Drawn& drawn) {
  const Form form = form_of(drawn.kind);
  return drawn.setup.profile == Profile::kDocumented || form == Form::kChain ||
         form == Form::kInfera;
}

bool has_stream(const Drawn& drawn) {
  return std::ranges::any_of(drawn.script,
                             [](const Op& op) { return op.as<Publish>() != nullptr; });
}

// ---- a_b_a ----

constexpr std::int64_t kGuest = 4095;

// A worker that nothing else names stores a run, and is lost again.
void come_and_go(Variation& varied, const Drawn& drawn, const Query& like) {
  const auto size = static_cast<std::size_t>(drawn.setup.config_as<Config>().block_size);
  Store run{.worker = kGuest, .block_size = static_cast<std::int64_t>(size)};
  run.tokens = like.tokens;
  run.tokens.resize(like.tokens.size() / size * size);
  for (std::size_t at = 0; at < run.tokens.size() / size; ++at)
    run.keys.push_back(static_cast<Key>(at));
  if (has_stream(drawn)) {
    varied.insert(Op::of(Publish{kGuest, 0, {event_of(run)}}));
    varied.insert(Op::of(Deliver{kGuest, 0, 0}));
    varied.insert(Op::of(Restart{kGuest, 0}));
    varied.insert(Op::of(Resubscribe{kGuest, std::nullopt}));
  } else {
    varied.insert(Op::of(std::move(run)));
    varied.insert(Op::of(Leave{kGuest, std::nullopt}));
  }
}

// A limited index of llmd forgets by what is asked.
Variation with_guests(const Drawn& drawn) {
  const Config config = drawn.setup.config_as<Config>();
  const bool forgets = drawn.setup.profile == Profile::kOriginal && config.size < kMostNumbers / 2;
  Variation varied;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    const auto* query = op.as<Query>();
    if (query == nullptr || forgets || !drawn.succeeded(at)) {
      varied.pair(at, op);
      continue;
    }
    varied.insert(op);
    if (isolates(drawn)) come_and_go(varied, drawn, *query);
    if (drawn.setup.profile == Profile::kDocumented && drawn.kind.operation("handover") != nullptr)
      varied.insert(Op::of(Handover{}));
    varied.pair(at, op);
  }
  return varied.script.size() > drawn.script.size() ? std::move(varied) : Variation();
}

// ---- order_of_independent_sequences ----

// Who holds how much, without names of workers.
Observation without_workers(const Observation& seen) {
  const auto* returned = seen.returns.get_if<QueryReturns>();
  if (returned == nullptr || seen.error) return seen;
  QueryReturns rest = *returned;
  for (Match& match : rest.matches) match.worker = 0;
  std::ranges::sort(rest.matches, [](const Match& a, const Match& b) {
    return std::pair(a.rank, a.blocks) < std::pair(b.rank, b.blocks);
  });
  for (Match& match : rest.matches) match = {.rank = match.rank, .blocks = match.blocks};
  return {.returns = Record::of(std::move(rest))};
}

Variation with_other_workers(const Drawn& drawn) {
  constexpr std::int64_t kNames = 4'096;
  Variation varied;
  for (std::size_t at = 0; at < drawn.script.size(); ++at)
    varied.pair(at,
                with_renamed(drawn.script[at], "worker",
                             [](std::int64_t worker) {
                               return worker >= 0 && worker < kNames ? kNames - 1 - worker : worker;
                             }),
                without_workers);
  return varied;
}

// ---- engines_are_independent ----

Variation without_one_worker(const Drawn& drawn) {
  if (!isolates(drawn)) return {};
  std::optional<std::int64_t> left_out;
  for (const Op& op : drawn.script)
    if (const auto worker = integer_of(op, "worker"); worker && !left_out) left_out = worker;
  Variation varied;
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    const auto worker = integer_of(op, "worker");
    if (worker == left_out && worker) continue;
    if (op.as<Query>() == nullptr) {
      varied.insert(op);
      continue;
    }
    any = true;
    varied.pair(at, op, [without = left_out](const Observation& seen) -> Observation {
      const auto* returned = seen.returns.get_if<QueryReturns>();
      if (returned == nullptr || seen.error || !without) return seen;
      QueryReturns rest = *returned;
      std::erase_if(rest.matches, [&](const Match& match) { return match.worker == *without; });
      return {.returns = Record::of(std::move(rest))};
    });
  }
  return any ? std::move(varied) : Variation();
}

}  // namespace

std::vector<const Law*> laws() {
  static const MetamorphicLaw kGuests(
      "a_b_a", "what is added and taken back again leaves no trace", kLongScript,
      {.how = "with a query, a handover, and a worker that comes and goes inserted",
       .applies = is_follower,
       .transformation = with_guests});
  static const MetamorphicLaw kNames(
      "order_of_independent_sequences",
      "what is done to one cache or sequence does not depend on when others are used, or on names",
      kLongScript,
      {.how = "with other worker numbers",
       .applies = is_follower,
       .transformation = with_other_workers});
  static const MetamorphicLaw kEngines(
      "engines_are_independent", "events of one engine change no answer for another", kLongScript,
      {.how = "without the first worker",
       .applies = is_follower,
       .transformation = without_one_worker});
  return {&kGuests, &kNames, &kEngines};
}

}  // namespace kvo::events
