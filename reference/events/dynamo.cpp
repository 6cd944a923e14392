#include "reference/events/dynamo.hpp"

#include <algorithm>

#include "reference/contract/values/mark.hpp"

namespace kvo::events {

DynamoFollower::DynamoFollower(const Config& config, QuirkSet<Quirk> quirks)
    : config_(config), device_(Form::kRadix, config, quirks) {}

// The event as indexes take it; none: it is dropped.
std::optional<Event> DynamoFollower::normalized(const Engine& engine, const Event& event) {
  if (!groups_.takes(engine, event) || !tier_of(event)) return std::nullopt;
  Event taken = event;
  if (event.kind != EventKind::kStored) return taken;
  if (event.block_size.value_or(config_.block_size) != config_.block_size) return std::nullopt;
  std::set<Key> named(event.keys.begin(), event.keys.end());
  if (named.size() < event.keys.size() || (event.parent && named.contains(*event.parent)))
    return std::nullopt;
  auto& salts = salts_[engine];
  if (!event.salt && event.parent) {
    const auto parent = salts.find(*event.parent);
    if (parent != salts.end() && parent->second.size() > 1) return std::nullopt;
    if (parent != salts.end() && !parent->second.begin()->empty())
      taken.salt = *parent->second.begin();
  }
  taken.keys.resize(std::min(taken.keys.size(),
                             taken.tokens.size() / static_cast<std::size_t>(config_.block_size)));
  for (const Key key : taken.keys) salts[key].insert(taken.salt.value_or(""));
  return taken;
}

void DynamoFollower::lower_stored(Edges& edges, const Event& event) {
  const auto contents =
      contents_.blocks(event.tokens, config_.block_size,
                       {event.lora.value_or(""), event.salt.value_or("")}, event.keys.size());
  std::optional<Key> before = event.parent;
  for (std::size_t at = 0; at < contents.size(); ++at) {
    edges[{before, contents[at]}] = event.keys[at];
    before = event.keys[at];
  }
}

Status DynamoFollower::apply(const Engine& engine, const Event& event) {
  if (event.kind == EventKind::kCleared) {
    for (auto& tier : lower_) tier.erase(engine);
    salts_.erase(engine);
    return device_.apply(engine, event);
  }
  const std::optional<Event> taken = normalized(engine, event);
  if (!taken) return {};
  const Tier tier = *tier_of(*taken);
  if (tier == Tier::kDevice) return device_.apply(engine, *taken);
  Edges& edges = lower_.at(static_cast<std::size_t>(tier) - 1)[engine];
  if (event.kind == EventKind::kStored)
    lower_stored(edges, *taken);
  else
    std::erase_if(edges, [&](const auto& edge) {
      return std::ranges::find(taken->keys, edge.second) != taken->keys.end();
    });
  return {};
}

Delivered DynamoFollower::deliver(const Engine& engine, std::int64_t seq, const Batch& batch,
                                  const Replay& replay) {
  std::int64_t& last = cursors_.try_emplace(engine, -1).first->second;
  const auto apply_all = [&](const Batch& events) {
    for (const Event& event : events) static_cast<void>(apply(engine, event).has_value());
  };
  Delivered done;
  if (seq > last + 1) {
    done.asked = last + 1;
    done.replayed.emplace();
    const Replayed answer = replay(last + 1);
    if (!answer.batches.empty() && answer.first > last + 1)
      KVO_MARK_IN(Profile::kOriginal, "events.dynamo", "a replay begins too late");
    std::int64_t number = answer.first;
    for (const Batch* const one : answer.batches) {
      apply_all(*one);
      done.replayed->push_back(number);
      last = number++;
    }
  }
  if (seq <= last) return done;
  apply_all(batch);
  last = seq;
  done.applied = true;
  return done;
}

void DynamoFollower::leave(std::int64_t worker, std::optional<std::int64_t> rank) {
  device_.leave(worker, rank);
  for (auto& tier : lower_) erase_engines(tier, worker, rank);
  erase_engines(salts_, worker, rank);
  erase_engines(cursors_, worker, rank);
  groups_.forget(worker, rank);
}

Matches DynamoFollower::query(const Prompt& prompt) {
  const Space space{prompt.lora, prompt.salt};
  const auto contents = contents_.blocks(prompt.tokens, config_.block_size, space);
  auto found = device_.depths(prompt);
  std::set<Engine> engines;
  for (const auto& [engine, depth] : found) engines.insert(engine);
  for (const auto& tier : lower_)
    for (const auto& [engine, edges] : tier) engines.insert(engine);
  Matches matches;
  for (const Engine& engine : engines) {
    Match match{.worker = engine.worker, .rank = engine.rank};
    std::size_t depth = 0;
    std::optional<Key> last;
    if (const auto device = found.find(engine); device != found.end()) {
      depth = static_cast<std::size_t>(device->second.blocks);
      match.blocks = shown(device->second.blocks);
      last = device->second.last;
    }
    std::array<std::int64_t, 3> more{};
    for (std::size_t tier = 0; tier < more.size(); ++tier) {
      const auto edges = lower_.at(tier).find(engine);
      if (edges == lower_.at(tier).end()) continue;
      for (; depth < contents.size(); ++depth, ++more.at(tier)) {
        const auto edge = edges->second.find({last, contents[depth]});
        if (edge == edges->second.end()) break;
        last = edge->second;
      }
    }
    match.host = shown(more[0]);
    match.disk = shown(more[1]);
    match.external = shown(more[2]);
    if (depth > 0) matches.push_back(match);
  }
  return matches;
}

}  // namespace kvo::events
