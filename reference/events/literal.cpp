#include "reference/events/literal.hpp"

#include <algorithm>

namespace kvo::events {
namespace {

constexpr std::int64_t kPooled = -1;  ///< the rank of a worker whose ranks are one

// What each kind calls what it refuses; empty: it does not say.
struct Words {
  const char* unknown_parent;
  const char* unknown_block;
  const char* unknown_worker;  ///< of a store behind a parent
};
Words words_of(Form form) {
  switch (form) {
    case Form::kChain:
      return {"unknown_parent", "", "unknown_worker"};
    case Form::kRadix:
      return {"unknown_parent", "unknown_block", "unknown_parent"};
    case Form::kCrtc:
      return {"rejected", "", "rejected"};
    case Form::kPositional:
      return {"rejected", "rejected", "rejected"};
    default:
      return {"", "", ""};
  }
}
Status refused(const char* word) {
  if (*word == '\0') return {};
  return fail_other(word);
}

}  // namespace

LiteralFollower::LiteralFollower(Form form, const Config& config, QuirkSet<Quirk> quirks)
    : form_(form), config_(config), quirks_(quirks) {}

Engine LiteralFollower::owner_of(const Engine& engine) const {
  const bool pools = form_ == Form::kChain || form_ >= Form::kLlmd;
  const bool shares = pools && has(Quirk::kRanksShareBlocks) && !answers_by_rank(form_, config_);
  return shares ? Engine{engine.worker, kPooled} : engine;
}

Status LiteralFollower::apply(const Engine& engine, const Event& event) {
  if (event.kind == EventKind::kCleared) {
    empty(engine);
    return {};
  }
  const std::optional<Tier> tier = tier_of(event);
  if (!tier || !groups_.takes(engine, event)) return {};
  if (event.kind == EventKind::kStored) return stored(holders_[owner_of(engine)], event, *tier);
  const auto holder = holders_.find(owner_of(engine));
  if (holder == holders_.end())
    return refused(form_ == Form::kCrtc ? "rejected" : words_of(form_).unknown_block);
  return removed(holder->second, event, *tier);
}

Status LiteralFollower::stored(Holder& holder, const Event& event, Tier tier) {
  if (event.block_size.value_or(config_.block_size) != config_.block_size) return {};
  if (form_ == Form::kChain && event.keys.empty()) return {};  // EV-41
  PrefixId prefix = kStart;
  std::string salt = event.salt.value_or("");
  if (event.parent) {
    if (holder.keys.empty()) return refused(words_of(form_).unknown_worker);
    const auto parent = holder.keys.find(*event.parent);
    if (parent == holder.keys.end()) return refused(words_of(form_).unknown_parent);
    prefix = parent->second.prefix;
    if (!event.salt) salt = parent->second.salt;
  }
  Space space{event.lora.value_or(""), salt};
  if (has(Quirk::kNamespacesShared) && form_ == Form::kInfera) space = {};
  const auto contents =
      contents_.blocks(event.tokens, config_.block_size, space, event.keys.size());
  for (std::size_t at = 0; at < contents.size(); ++at) {
    prefix = contents_.prefix(prefix, contents[at]);
    add(holder, event.keys[at], prefix, salt, {tier, event.group.value_or(0)});
  }
  return {};
}

void LiteralFollower::add(Holder& holder, Key key, PrefixId prefix, const std::string& salt,
                          std::pair<Tier, std::int64_t> where) {
  auto known = holder.keys.find(key);
  if (known != holder.keys.end() && known->second.prefix != prefix) {  // it moves (EV-43)
    for (const auto& [copy, number] : known->second.copies)
      release(holder, {copy.first, known->second.prefix});
    holder.keys.erase(known);
    known = holder.keys.end();
  }
  if (known == holder.keys.end()) known = holder.keys.emplace(key, Place{prefix, salt}).first;
  std::int64_t& copies = known->second.copies[where];
  if (copies == 0) ++holder.held[{where.first, prefix}];
  copies = has(Quirk::kOneRemovalEnds) ? 1 : copies + 1;
}

Status LiteralFollower::removed(Holder& holder, const Event& event, Tier tier) {
  bool unknown = false;
  for (const Key key : event.keys) {
    const auto known = holder.keys.find(key);
    const std::pair where(tier, event.group.value_or(0));
    if (known == holder.keys.end() || !known->second.copies.contains(where))
      unknown = true;
    else
      drop(holder, known, where);
  }
  return unknown ? refused(words_of(form_).unknown_block) : Status();
}

// Takes one copy off. The key goes with its last one.
void LiteralFollower::drop(Holder& holder, std::map<Key, Place>::iterator key,
                           std::pair<Tier, std::int64_t> where) {
  Place& place = key->second;
  if (--place.copies.at(where) > 0) return;
  place.copies.erase(where);
  release(holder, {where.first, place.prefix});
  if (place.copies.empty()) holder.keys.erase(key);
}

// One key less has the prefix in the tier.
void LiteralFollower::release(Holder& holder, std::pair<Tier, PrefixId> what) {
  const auto held = holder.held.find(what);
  if (--held->second == 0) holder.held.erase(held);
}

void LiteralFollower::empty(const Engine& engine) {
  const auto holder = holders_.find(owner_of(engine));
  if (holder != holders_.end()) holder->second = Holder();
}

void LiteralFollower::apply_batch(const Engine& engine, const Batch& batch) {
  for (const Event& event : batch) static_cast<void>(apply(engine, event).has_value());
}

Delivered LiteralFollower::deliver(const Engine& engine, std::int64_t seq, const Batch& batch,
                                   const Replay& replay) {
  if (has(Quirk::kNumbersUnread)) {
    apply_batch(engine, batch);
    return {.applied = true};
  }
  std::int64_t& last = cursors_.try_emplace(engine, -1).first->second;
  Delivered done;
  if (seq <= last) {  // a repetition, or a new life
    const bool says_so = !batch.empty() && batch.front().kind == EventKind::kCleared;
    const bool begins_again = seq <= 1 && last >= 2;
    if (!says_so && !begins_again) return done;
    empty(engine);
    last = seq - 1;
    if (!says_so && seq > 0) last = -1;  // what came before it is missing
  }
  if (seq > last + 1) {
    done.asked = last + 1;
    done.replayed.emplace();
    const Replayed answer = replay(last + 1);
    const bool closes = !answer.batches.empty() && answer.first == last + 1;
    if (!closes) {
      empty(engine);
      done.degraded = true;
    }
    std::int64_t number = answer.first;
    for (const Batch* const one : answer.batches) {
      apply_batch(engine, *one);
      done.replayed->push_back(number);
      last = number++;
    }
  }
  if (seq <= last) return done;
  apply_batch(engine, batch);
  last = seq;
  done.applied = true;
  return done;
}

void LiteralFollower::leave(std::int64_t worker, std::optional<std::int64_t> rank) {
  if (rank && owner_of({worker, *rank}).rank == kPooled) rank.reset();
  erase_engines(holders_, worker, rank);
  erase_engines(cursors_, worker, rank);
  groups_.forget(worker, rank);
}

Matches LiteralFollower::query(const Prompt& prompt) {
  Space space{prompt.lora, prompt.salt};
  if (has(Quirk::kNamespacesShared) && form_ == Form::kInfera) space = {};
  const auto prefixes = contents_.prefixes(prompt.tokens, config_.block_size, space);
  const bool by_rank = answers_by_rank(form_, config_);
  Matches matches;
  for (const auto& [owner, holder] : holders_) {
    std::size_t depth = 0;
    std::array<std::int64_t, 4> blocks{};
    for (const Tier tier : {Tier::kDevice, Tier::kHost, Tier::kDisk, Tier::kExternal}) {
      if (tier != Tier::kDevice && form_ != Form::kDynamo) break;
      for (; depth < prefixes.size() && holder.held.contains({tier, prefixes[depth]}); ++depth)
        ++blocks.at(static_cast<std::size_t>(tier));
    }
    if (depth == 0) continue;
    if (!by_rank && !matches.empty() && matches.back().worker == owner.worker) {
      matches.back().blocks = std::max(*matches.back().blocks, blocks[0]);
      continue;
    }
    matches.push_back({.worker = owner.worker,
                       .rank = by_rank ? std::optional(owner.rank) : std::nullopt,
                       .blocks = shown(blocks[0]),
                       .host = shown(blocks[1]),
                       .disk = shown(blocks[2]),
                       .external = shown(blocks[3])});
  }
  return matches;
}

Result<std::int64_t> LiteralFollower::size() const {
  if (form_ != Form::kChain && form_ != Form::kRadix && form_ != Form::kInfera)
    return fail(Code::kNotSupported);
  std::int64_t size = 0;
  for (const auto& [owner, holder] : holders_) size += std::ssize(holder.keys);
  return size;
}

Result<std::int64_t> LiteralFollower::handover() {
  return 0;  // what it would dump are its maps
}

}  // namespace kvo::events
