#include "properties/events/ledger.hpp"

namespace kvo::events {

void EngineLedger::break_guarantee(const char* which) {
  if (broken_.empty()) broken_ = which;
}

void EngineLedger::change(PrefixId prefix, std::int64_t by, Tier tier, const Changed& changed) {
  if (tier != Tier::kDevice) return;
  const std::int64_t after = copies_[prefix] += by;
  if (after == 0) copies_.erase(prefix);
  if (changed) changed(prefix, after - by, after);
}

std::optional<PrefixId> EngineLedger::prefix_of(Key key) const {
  const auto known = keys_.find(key);
  if (known == keys_.end()) return std::nullopt;
  return known->second.prefix;
}

void EngineLedger::apply(Contents& contents, std::int64_t block_size, const Event& event,
                         const Changed& changed) {
  if (event.kind == EventKind::kCleared) {
    const auto all = std::exchange(copies_, {});
    *this = EngineLedger();
    if (changed)
      for (const auto& [prefix, copies] : all) changed(prefix, copies, 0);
    return;
  }
  const std::int64_t group = event.group.value_or(0);
  if (event.spec) main_[group] = is_main(*event.spec);
  const auto main = main_.find(group);
  if (main != main_.end() ? !main->second : group != 0) return;
  const auto tier = tier_of(event);
  if (!tier) return;
  if (event.kind == EventKind::kRemoved) {
    for (const Key key : event.keys) {
      const auto count = counts_.find({*tier, group, key});
      if (count == counts_.end()) {
        break_guarantee("G5");
        continue;
      }
      if (--count->second == 0) counts_.erase(count);
      const auto named = keys_.find(key);
      change(named->second.prefix, -1, *tier, changed);
      if (--named->second.copies == 0) keys_.erase(named);
    }
    return;
  }
  const auto size = static_cast<std::size_t>(event.block_size.value_or(block_size));
  if (event.tokens.size() != size * event.keys.size() ||
      size != static_cast<std::size_t>(block_size))
    return break_guarantee("G3");
  PrefixId prefix = kStart;
  std::string salt = event.salt.value_or("");
  if (event.parent) {
    const auto parent = keys_.find(*event.parent);
    if (parent == keys_.end()) return break_guarantee("G2");
    prefix = parent->second.prefix;
    if (!event.salt) salt = parent->second.salt;
  }
  const auto blocks = contents.blocks(event.tokens, block_size, {event.lora.value_or(""), salt});
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    prefix = contents.prefix(prefix, blocks[at]);
    Named& named = keys_.try_emplace(event.keys[at], Named{prefix, salt}).first->second;
    if (named.prefix != prefix) return break_guarantee("G4");
    ++named.copies;
    ++counts_[{*tier, group, event.keys[at]}];
    change(prefix, 1, *tier, changed);
  }
}

std::int64_t EngineLedger::held(std::span<const PrefixId> prompt) const {
  std::int64_t depth = 0;
  for (const PrefixId prefix : prompt) {
    if (!copies_.contains(prefix)) break;
    ++depth;
  }
  return depth;
}

}  // namespace kvo::events
