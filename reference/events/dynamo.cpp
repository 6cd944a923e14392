#include "reference/events/dynamo.hpp"

#include <algorithm>
#include <vector>

#include "reference/contract/values/mark.hpp"

namespace kvo::events {

DynamoFollower::DynamoFollower(const Config& config, QuirkSet<Quirk> quirks)
    : config_(config), device_(Form::kRadix, config, quirks) {}

// A stored event without a salt takes that of its parent (EV-68). Returns  false: the parent was
// stored under several.
bool DynamoFollower::take_salt(Salts& salts, Event& event) {
  if (event.kind == EventKind::kRemoved) {
    for (const Key key : event.keys) {
      const auto known = salts.find(key);
      if (known != salts.end() && known->second) salts.erase(known);
    }
    return true;
  }
  if (event.salt && event.salt->empty()) event.salt.reset();
  if (!event.salt && event.parent) {
    const auto parent = salts.find(*event.parent);
    if (parent != salts.end() && !parent->second) return false;
    if (parent != salts.end()) event.salt = parent->second;
  }
  for (const Key key : event.keys) {
    const auto known = salts.find(key);
    if (known != salts.end() && known->second != event.salt)
      known->second.reset();
    else if (known == salts.end() && event.salt)
      salts.emplace(key, event.salt);
  }
  return true;
}

// The event as indexes take it; none: it is dropped. Of those for a disk or elsewhere neither group
// nor salt is looked at.
std::optional<Event> DynamoFollower::normalized(const Engine& engine, Tier tier,
                                                const Event& event) {
  Event taken = event;
  const bool is_near = tier == Tier::kDevice || tier == Tier::kHost;
  if (is_near && (!groups_.takes(engine, event) || !take_salt(salts_[engine], taken)))
    return std::nullopt;
  if (event.kind != EventKind::kStored) return taken;
  if (event.block_size.value_or(config_.block_size) != config_.block_size) return std::nullopt;
  std::set<Key> named(event.keys.begin(), event.keys.end());
  if (named.size() < event.keys.size() || (event.parent && named.contains(*event.parent)))
    return std::nullopt;
  taken.keys.resize(std::min(taken.keys.size(),
                             taken.tokens.size() / static_cast<std::size_t>(config_.block_size)));
  return taken;
}

void DynamoFollower::Lower::take_out(const Engine& engine, const Place& place) {
  const auto edge = edges.find(place);
  edge->second.engines.erase(engine);
  if (edge->second.engines.empty()) edges.erase(edge);
}

void DynamoFollower::Lower::clear(const Engine& engine) {
  const auto known = blocks.find(engine);
  if (known == blocks.end()) return;
  for (const auto& [key, place] : known->second) take_out(engine, place);
  blocks.erase(known);
}

void DynamoFollower::lower_stored(Lower& lower, const Engine& engine, const Event& event) {
  const auto contents =
      contents_.blocks(event.tokens, config_.block_size,
                       {event.lora.value_or(""), event.salt.value_or("")}, event.keys.size());
  auto& blocks = lower.blocks[engine];
  std::optional<Key> before = event.parent;
  for (std::size_t at = 0; at < contents.size(); ++at) {
    const Key key = event.keys[at];
    const Lower::Place place{before, contents[at]};
    const auto known = blocks.find(key);
    if (known != blocks.end() && known->second != place) return;
    Lower::Edge& edge = lower.edges.try_emplace(place, Lower::Edge{key}).first->second;
    if (edge.key != key) return;
    edge.engines.insert(engine);
    blocks[key] = place;
    before = key;
  }
}

Status DynamoFollower::apply(const Engine& engine, const Event& event) {
  if (event.kind == EventKind::kCleared) {
    for (Lower& lower : lower_) lower.clear(engine);
    salts_.erase(engine);
    return device_.apply(engine, event);
  }
  const std::optional<Tier> tier = tier_of(event);
  if (!tier) return {};
  const std::optional<Event> taken = normalized(engine, *tier, event);
  if (!taken) return {};
  if (*tier == Tier::kDevice) return device_.apply(engine, *taken);
  Lower& lower = lower_.at(static_cast<std::size_t>(*tier) - 1);
  if (event.kind == EventKind::kStored) {
    lower_stored(lower, engine, *taken);
    return {};
  }
  auto& blocks = lower.blocks[engine];
  for (const Key key : taken->keys) {
    const auto known = blocks.find(key);
    if (known == blocks.end()) continue;
    lower.take_out(engine, known->second);
    blocks.erase(known);
  }
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
  for (Lower& lower : lower_) {
    std::vector<Engine> leaving;
    for (const auto& [engine, blocks] : lower.blocks)
      if (engine.worker == worker && (!rank || engine.rank == *rank)) leaving.push_back(engine);
    for (const Engine& engine : leaving) lower.clear(engine);
  }
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
  for (const Lower& lower : lower_)
    for (const auto& [engine, blocks] : lower.blocks) engines.insert(engine);
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
      const auto& edges = lower_.at(tier).edges;
      for (; depth < contents.size(); ++depth, ++more.at(tier)) {
        const auto edge = edges.find({last, contents[depth]});
        if (edge == edges.end() || !edge->second.engines.contains(engine)) break;
        last = edge->second.key;
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
