#include "reference/events/infera.hpp"

#include <algorithm>

namespace kvo::events {

InferaFollower::InferaFollower(const Config& config, QuirkSet<Quirk> quirks)
    : config_(config), quirks_(quirks) {}

Engine InferaFollower::owner_of(const Engine& engine) const {
  return {engine.worker, config_.multiplexed ? engine.rank : 0};
}

Space InferaFollower::space_of(const std::string& lora, const std::string& salt) const {
  return quirks_.has(Quirk::kNamespacesShared) ? Space() : Space{lora, salt};
}

Status InferaFollower::apply(const Engine& engine, const Event& event) {
  const bool reads_maps = config_.engine == Dialect::kVllm;
  if (reads_maps != (config_.wire == Wire::kMap)) return {};
  Holder& holder = holders_[owner_of(engine)];
  switch (event.kind) {
    case EventKind::kStored:
      // SGLang's events have no kind (EV-83).
      if (!reads_maps || !event.spec || is_main(*event.spec)) stored(holder, event);
      break;
    case EventKind::kRemoved:
      removed(holder, event.keys);
      break;
    case EventKind::kCleared:
      holder = Holder();
      break;
  }
  return {};
}

void InferaFollower::stored(Holder& holder, const Event& event) {
  PrefixId before = kStart;
  if (event.parent) {
    const auto parent = holder.keys.find(*event.parent);
    if (parent == holder.keys.end()) return;
    before = parent->second;
  }
  const auto blocks =
      contents_.prefixes(event.tokens, config_.block_size,
                         space_of(event.lora.value_or(""), event.salt.value_or("")), before);
  const bool fits = blocks.size() == event.keys.size();
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    holder.held.insert(blocks[at]);
    if (!fits) continue;
    holder.keys[event.keys[at]] = blocks[at];
    if (!quirks_.has(Quirk::kOneRemovalEnds)) ++holder.copies[event.keys[at]];
  }
}

void InferaFollower::removed(Holder& holder, const Keys& keys) {
  for (const Key key : keys) {
    const auto known = holder.keys.find(key);
    if (known == holder.keys.end()) continue;
    if (const auto copies = holder.copies.find(key); copies != holder.copies.end()) {
      if (--copies->second > 0) continue;
      holder.copies.erase(copies);
    }
    holder.held.erase(known->second);
    holder.keys.erase(known);
  }
}

void InferaFollower::leave(std::int64_t worker, std::optional<std::int64_t> rank) {
  if (rank) rank = owner_of({worker, *rank}).rank;
  erase_engines(holders_, worker, rank);
}

Matches InferaFollower::query(const Prompt& prompt) {
  const auto prefixes =
      contents_.prefixes(prompt.tokens, config_.block_size, space_of(prompt.lora, prompt.salt));
  Matches matches;
  for (const auto& [owner, holder] : holders_) {
    std::int64_t depth = 0;
    for (const PrefixId prefix : prefixes) {
      if (!holder.held.contains(prefix)) break;
      ++depth;
    }
    if (depth == 0) continue;
    matches.push_back({.worker = owner.worker, .blocks = depth});
    if (config_.multiplexed) matches.back().rank = owner.rank;
  }
  return matches;
}

Result<std::int64_t> InferaFollower::size() const {
  std::int64_t size = 0;
  for (const auto& [owner, holder] : holders_) size += std::ssize(holder.held);
  return size;
}

}  // namespace kvo::events
