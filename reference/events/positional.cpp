#include "reference/events/positional.hpp"

#include <algorithm>

namespace kvo::events {

PositionalFollower::PositionalFollower(const Config& config, QuirkSet<Quirk> quirks)
    : config_(config), quirks_(quirks) {}

Status PositionalFollower::apply(const Engine& engine, const Event& event) {
  if (event.kind == EventKind::kStored) return stored(engine, event);
  if (event.kind == EventKind::kRemoved) return removed(engine, event.keys);
  clear(engine);
  return {};
}

Status PositionalFollower::stored(const Engine& engine, const Event& event) {
  const auto contents =
      contents_.blocks(event.tokens, config_.block_size,
                       {event.lora.value_or(""), event.salt.value_or("")}, event.keys.size());
  for (std::size_t at = 0; at < contents.size(); ++at) {
    const auto parent = at > 0 ? std::optional(event.keys[at - 1]) : event.parent;
    named_.try_emplace(event.keys[at], Named{parent, contents[at]});
  }
  auto& blocks = blocks_[engine];  // it is heard of, even if the event fails
  std::int64_t position = 0;
  if (event.parent) {
    const auto parent = blocks.find(*event.parent);
    if (parent == blocks.end()) return fail_other("rejected");
    position = parent->second.first + 1;
  }
  for (std::size_t at = 0; at < contents.size(); ++at, ++position) {
    const Key key = event.keys[at];
    const Place place{position, contents[at]};
    const auto known = blocks.find(key);
    if (known != blocks.end() && known->second != place) {
      if (!quirks_.has(Quirk::kKeyLeavesTrace)) take_out(engine, key, known->second);
    }
    index_[place][key].insert(engine);
    blocks[key] = place;
    if (!quirks_.has(Quirk::kOneRemovalEnds)) ++copies_[{engine, key}];
  }
  return {};
}

Status PositionalFollower::removed(const Engine& engine, const Keys& keys) {
  const auto blocks = blocks_.find(engine);
  if (blocks == blocks_.end()) return fail_other("rejected");
  for (const Key key : keys) {
    const auto known = blocks->second.find(key);
    if (known == blocks->second.end()) return fail_other("rejected");
    if (const auto copies = copies_.find({engine, key}); copies != copies_.end()) {
      if (--copies->second > 0) continue;
      copies_.erase(copies);
    }
    take_out(engine, key, known->second);
    blocks->second.erase(known);
  }
  return {};
}

void PositionalFollower::take_out(const Engine& engine, Key key, const Place& place) {
  const auto entry = index_.find(place);
  if (entry == index_.end()) return;
  const auto holders = entry->second.find(key);
  if (holders == entry->second.end()) return;
  holders->second.erase(engine);
  if (holders->second.empty()) entry->second.erase(holders);
  if (entry->second.empty()) index_.erase(entry);
}

void PositionalFollower::clear(const Engine& engine) {
  std::erase_if(copies_, [&](const auto& entry) { return entry.first.first == engine; });
  const auto blocks = blocks_.find(engine);
  if (blocks == blocks_.end()) return;
  for (const auto& [key, place] : blocks->second) take_out(engine, key, place);
  blocks_.erase(blocks);
}

void PositionalFollower::leave(std::int64_t worker, std::optional<std::int64_t> rank) {
  std::vector<Engine> leaving;
  for (const auto& [engine, blocks] : blocks_)
    if (engine.worker == worker && (!rank || engine.rank == *rank)) leaving.push_back(engine);
  for (const Engine& engine : leaving) clear(engine);
}

// The chain of contents that a key is the hash of (EV-61); none: an opaque number.
std::optional<PrefixId> PositionalFollower::chain_of(Key key) {
  std::vector<Key> open;
  PrefixId chain = kStart;
  for (std::optional<Key> at = key; at;) {
    if (const auto known = chains_.find(*at); known != chains_.end()) {
      chain = known->second;
      break;
    }
    const auto named = named_.find(*at);
    if (named == named_.end() || std::ranges::find(open, *at) != open.end()) return std::nullopt;
    open.push_back(*at);
    at = named->second.parent;
  }
  for (auto at = open.rbegin(); at != open.rend(); ++at)
    chains_[*at] = chain = contents_.prefix(chain, named_.at(*at).content);
  return chain;
}

// ---- query (EV-62) ----

// Position by position; one with as many engines as are active passes.
void PositionalFollower::scan(Walk& walk, std::size_t from, std::size_t to) {
  for (std::size_t position = from; position <= to && !walk.active.empty(); ++position) {
    if (!walk.same_number(position)) walk.drop(position);
  }
}

// Looks for the first position where the number changes, as if no engine came back behind one.
void PositionalFollower::bisect(Walk& walk, std::size_t last) const {
  for (std::size_t at = 0; at < last && !walk.active.empty() && !walk.same_number(last);) {
    if (last - at <= static_cast<std::size_t>(config_.jump)) return scan(walk, at + 1, last);
    std::size_t above = last;
    while (above - at > 1) {
      const std::size_t middle = at + (above - at) / 2;
      (walk.same_number(middle) ? at : above) = middle;
    }
    walk.drop(above);
    at = above;
  }
}

Matches PositionalFollower::query(const Prompt& prompt) {
  const Space space{prompt.lora, prompt.salt};
  const auto contents = contents_.blocks(prompt.tokens, config_.block_size, space);
  if (contents.empty() ||
      (config_.hashes == Hashes::kEngine && quirks_.has(Quirk::kForeignKeysUnfound)))
    return {};
  Walk walk;
  PrefixId chain = kStart;
  for (std::size_t position = 0; position < contents.size(); ++position) {
    chain = contents_.prefix(chain, contents[position]);
    walk.at.push_back(nullptr);
    const auto entry = index_.find({static_cast<std::int64_t>(position), contents[position]});
    if (entry == index_.end()) continue;
    for (const auto& [key, holders] : entry->second)
      if (chain_of(key) == chain) walk.at.back() = &holders;
  }
  if (walk.at.front() == nullptr) return {};
  walk.active = *walk.at.front();
  const std::size_t last = contents.size() - 1;
  if (!quirks_.has(Quirk::kHolesUnseen)) {
    for (std::size_t position = 1; position <= last; ++position) walk.drop(position);
  } else if (config_.search == Search::kBinary) {
    bisect(walk, last);
  } else {
    const auto jump = static_cast<std::size_t>(config_.jump);
    for (std::size_t at = 0; at < last && !walk.active.empty();) {
      const std::size_t next = std::min(last, at + jump);
      if (!walk.same_number(next)) scan(walk, at + 1, next);
      at = next;
    }
  }
  for (const Engine& engine : walk.active)
    walk.depths[engine] = static_cast<std::int64_t>(contents.size());
  Matches matches;
  for (const auto& [engine, blocks] : walk.depths)
    matches.push_back({.worker = engine.worker, .rank = engine.rank, .blocks = blocks});
  return matches;
}

// Events with absolute positions: what the second map says (EV-63).
Result<std::int64_t> PositionalFollower::handover() {
  index_.clear();
  std::erase_if(blocks_, [](const auto& entry) { return entry.second.empty(); });
  for (const auto& [engine, blocks] : blocks_)
    for (const auto& [key, place] : blocks) index_[place][key].insert(engine);
  return 0;
}

}  // namespace kvo::events
