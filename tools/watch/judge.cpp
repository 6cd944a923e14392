#include "tools/watch/judge.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "properties/campaign/generator.hpp"
#include "reference/events/contents.hpp"

namespace kvo::tools {
namespace {

std::uint64_t hash_of(std::uint64_t before, const std::optional<std::string>& text) {
  for (const char one : text.value_or(""))
    before = case_seed(before, static_cast<unsigned char>(one));
  return case_seed(before, text ? 1 : 0);
}

}  // namespace

Arrival StreamJudge::arrival(const events::Engine& engine, std::int64_t number,
                             const WireBatch& batch) const {
  const auto known = engines_.find(engine);
  if (known == engines_.end() || number == known->second.last + 1) return Arrival::kNext;
  const std::int64_t last = known->second.last;
  if (last < 0) return Arrival::kNext;
  if (number > last) return Arrival::kGap;
  const bool cleared =
      !batch.events.empty() && batch.events.front().kind == events::EventKind::kCleared;
  return cleared || (number <= 1 && last >= 2) ? Arrival::kRestart : Arrival::kRepeated;
}

void StreamJudge::find(const Now& now, const std::string& law, const std::string& what, bool fault,
                       const std::string& first, std::int64_t count) {
  const auto known = std::ranges::find_if(findings_, [&](const StreamFinding& one) {
    return one.what == what && one.worker == now.engine.worker;
  });
  if (known != findings_.end())
    known->count += count;
  else
    findings_.push_back({law, what, fault, count, now.engine.worker, now.batch, first});
}

std::int64_t StreamJudge::held_of(const events::Engine& engine,
                                  const std::vector<events::Key>& keys) const {
  const auto known = engines_.find(engine);
  if (known == engines_.end()) return 0;
  const auto& held = known->second.keys;
  return std::ranges::find_if(keys,
                              [&](events::Key key) {
                                const auto at = held.find(key);
                                return at == held.end() || at->second.copies <= 0;
                              }) -
         keys.begin();
}

void StreamJudge::reuses(const events::Engine& engine, bool otherwise, const std::string& what) {
  const auto known = engines_.find(engine);
  find({engine, known == engines_.end() ? -1 : known->second.last}, "",
       otherwise ? "the engine reuses other tokens than it announced"
                 : "the engine does not say what it reuses",
       otherwise, what);
}

void StreamJudge::undecodable(std::int64_t worker, std::int64_t number,
                              const std::string& problem) {
  find({{worker, 0}, number}, "", "messages that are no batch", true, problem);
}

void StreamJudge::apply(const events::Engine& engine, std::int64_t number, const WireBatch& batch,
                        bool replayed) {
  const Arrival came = arrival(engine, number, batch);
  Engine& own = engines_[engine];
  const Now now{engine, number};
  if (came == Arrival::kRepeated) {
    if (!replayed) find(now, "", "batches that came twice, or too late", false, "");
    return;
  }
  if (came == Arrival::kRestart) {
    find(now, "", "numbering began again: the engine restarted", false,
         fmt::format("after batch {}", own.last));
    own.keys.clear();
    own.groups.clear();
    own.from_start = number == 0;
    own.first = number;
  } else if (came == Arrival::kGap) {
    find(now, "G1", "batches lost", false, fmt::format("{} to {}", own.last + 1, number - 1),
         number - own.last - 1);
    own.from_start = false;  // what they stored is not known
  } else if (own.batches == 0) {
    own.from_start = own.from_start || number == 0;
    own.first = number;
    if (!own.from_start)
      find(now, "", "joined late: blocks from before are not known", false,
           fmt::format("at batch {}", number));
  }
  own.last = number;
  ++own.batches;
  own.maps = own.maps || batch.maps;
  own.events += std::ssize(batch.events);
  for (const std::string& field : batch.unread)
    find(now, "", "fields that are not read: " + field, false, "");
  for (const events::Event& event : batch.events) {
    const auto tier = events::tier_of(event);
    if (!tier) find(now, "", "unknown mediums", false, *event.medium);
    own.plain = own.plain && tier == events::Tier::kDevice && event.group.value_or(0) == 0;
    if (event.kind == events::EventKind::kCleared) {
      own.keys.clear();
    } else if (event.kind == events::EventKind::kStored) {
      group_of(own, now, event);
      stored(own, now, event);
    } else {
      removed(own, now, event);
    }
  }
}

void StreamJudge::group_of(Engine& engine, const Now& now, const events::Event& event) {
  if (!event.group) return;
  if (event.spec)
    engine.groups[*event.group] = *event.spec;
  else if (!engine.groups.contains(*event.group))
    find(now, "", "groups without a kind", false, fmt::format("group {}", *event.group));
}

void StreamJudge::stored(Engine& engine, const Now& now, const events::Event& event) {
  const std::int64_t size = event.block_size.value_or(1);
  if (!block_size_) block_size_ = size;
  if (size != *block_size_)
    find(now, "", "another block size", false, fmt::format("{}, not {}", size, *block_size_));
  const auto wanted = static_cast<std::int64_t>(event.keys.size()) * size;
  const bool fits = std::ssize(event.tokens) == wanted;
  if (!fits)
    find(now, "G3", "tokens do not fit keys", true,
         fmt::format("{} tokens, {} keys of {}", event.tokens.size(), event.keys.size(), size));
  std::uint64_t content = hash_of(hash_of(0, event.lora), event.salt);
  bool placed = fits;
  if (event.parent) {
    const auto parent = engine.keys.find(*event.parent);
    const bool known = parent != engine.keys.end() && parent->second.copies > 0;
    if (!known && engine.from_start)
      find(now, "G2", "a parent that is not held", true, fmt::format("key {}", *event.parent));
    placed = placed && known && parent->second.placed;
    if (known) content = parent->second.content;
  }
  std::optional<events::Key> before = event.parent;
  for (std::size_t i = 0; i < event.keys.size(); ++i) {
    for (std::int64_t at = 0; fits && at < size; ++at)
      content = case_seed(
          content,
          static_cast<std::uint64_t>(
              event.tokens[i * static_cast<std::size_t>(size) + static_cast<std::size_t>(at)]));
    Key& key = engine.keys[event.keys[i]];
    if (key.placed && placed && key.content != content)
      find(now, "G4", "a key with two contents", true, fmt::format("key {}", event.keys[i]));
    if (key.copies++ == 0) {
      key.parent = before;
      if (before)
        if (const auto parent = engine.keys.find(*before); parent != engine.keys.end())
          ++parent->second.children;
    }
    if (placed) {
      key.content = content;
      key.placed = true;
    }
    before = event.keys[i];
  }
}

void StreamJudge::removed(Engine& engine, const Now& now, const events::Event& event) {
  for (const events::Key number : event.keys) {
    const auto known = engine.keys.find(number);
    if (known == engine.keys.end() || known->second.copies == 0) {
      if (engine.from_start)
        find(now, "G5", "removed more often than stored", true, fmt::format("key {}", number));
      continue;
    }
    Key& key = known->second;
    if (--key.copies > 0) continue;
    if (key.children > 0)
      find(now, "G6", "removed before a block that hangs on it", false,
           fmt::format("key {}", number));
    if (key.parent)
      if (const auto parent = engine.keys.find(*key.parent); parent != engine.keys.end())
        --parent->second.children;
  }
}

std::map<events::Engine, StreamJudge::Held> StreamJudge::held() const {
  std::map<events::Engine, Held> all;
  for (const auto& [engine, own] : engines_) {
    Held& held = all[engine];
    held = {own.batches, own.events, own.first, own.last, own.maps};
    for (const auto& [number, key] : own.keys) {
      held.keys += key.copies > 0 ? 1 : 0;
      held.more_copies += key.copies > 1 ? 1 : 0;
    }
  }
  return all;
}

}  // namespace kvo::tools
