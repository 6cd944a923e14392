#include "optimized/groups/linked_pool.hpp"

#include <algorithm>

namespace kvo::optimized {

using prefix::BlockKeys;
using prefix::Ids;
using prefix::IdsView;
using prefix::Quirk;

LinkedPool::LinkedPool(std::int64_t count, bool enable_caching, bool events, QuirkSet<Quirk> quirks,
                       std::int64_t groups)
    : Pool(events, quirks, groups), count_(count), enable_caching_(enable_caching), queue_(count) {
  std::vector<Hold> holds(static_cast<std::size_t>(count));
  for (Number block = 0; block < holds.size(); ++block) holds[block].block = block;
  holds_ = groups::Rows<Hold>(std::move(holds));
}

std::int64_t LinkedPool::unused(IdsView blocks) const {
  return std::ranges::count_if(blocks,
                               [&](std::int64_t block) { return block != 0 && refs(block) == 0; });
}

// ---- Keys ----

std::optional<std::int64_t> LinkedPool::key(std::int64_t block) const {
  return holds_[block].key;
}

Ids LinkedPool::keys_of(std::int64_t block) const {
  Ids keys;
  if (!has_key(static_cast<Number>(block))) return keys;
  for (auto hold = static_cast<Number>(block); hold != kNone; hold = holds_[hold].next)
    keys.push_back(*holds_[hold].key);
  return keys;
}

bool LinkedPool::carries(std::int64_t block, std::int64_t key) const {
  auto hold = static_cast<Number>(block);
  while (hold != kNone && holds_[hold].key != key) hold = holds_[hold].next;
  return hold != kNone;
}

std::int64_t LinkedPool::carriers(IdsView blocks, const BlockKeys& keys) const {
  std::int64_t i = 0;
  for (const std::int64_t block : blocks) {
    if (block != 0 && !carries(block, keys[i])) break;
    ++i;
  }
  return i;
}

std::optional<std::int64_t> LinkedPool::holder(std::int64_t key) const {
  if (key >= ends_.size() || ends_[key].block == kNone) return std::nullopt;
  return ends_[key].block;
}

Ids LinkedPool::holders(const BlockKeys& keys) const {
  Ids blocks(static_cast<std::size_t>(keys.count()));
  std::size_t found = 0;
  for (std::int64_t& block : blocks) {
    const std::int64_t key = keys[static_cast<std::int64_t>(found)];
    if (key >= ends_.size() || ends_[key].block == kNone) break;
    block = ends_[key].block;
    ++found;
  }
  blocks.resize(found);
  return blocks;
}

// After the other holds of the key.
void LinkedPool::join(Number hold, std::int64_t key) {
  ends_.grow(key + 1);
  const Number last = ends_[key].last;
  Hold& there = holds_.change(hold);
  there.key = key;
  there.earlier = last;
  there.later = kNone;
  if (last != kNone) holds_.change(last).later = hold;
  Ends& ends = ends_.change(key);
  if (last == kNone) {
    ends.first = hold;
    ends.block = holds_[hold].block;
  }
  ends.last = hold;
}

void LinkedPool::leave(Number hold) {
  const auto [key, block, earlier, later, next] = holds_[hold];
  if (earlier != kNone) holds_.change(earlier).later = later;
  if (later != kNone) holds_.change(later).earlier = earlier;
  if (earlier != kNone && later != kNone) return;
  Ends& ends = ends_.change(*key);
  if (earlier == kNone) {
    ends.first = later;
    ends.block = later == kNone ? kNone : holds_[later].block;
  }
  if (later == kNone) ends.last = earlier;
}

// The hold is of no key any more.
void LinkedPool::drop(Number hold) {
  if (hold < count_)
    holds_.change(hold) = {.block = hold};
  else
    holds_.change(hold).next = std::exchange(unused_, hold);
}

void LinkedPool::set_key(std::int64_t number, std::int64_t key) {
  const auto block = static_cast<Number>(number);
  if (!has_key(block)) return join(block, key);
  Number hold = unused_;
  if (hold == kNone) {
    hold = static_cast<Number>(holds_.size());
    holds_.grow(holds_.size() + 1);
  } else {
    unused_ = holds_[hold].next;
  }
  Number before = block;  // the main key stays the first
  for (Number next = holds_[before].next; next != kNone && *holds_[next].key < key;
       next = holds_[next].next)
    before = next;
  Hold& made = holds_.change(hold);
  made.block = block;
  made.next = holds_[before].next;
  holds_.change(before).next = hold;
  join(hold, key);
}

bool LinkedPool::take_key(std::int64_t block) {
  if (!has_key(static_cast<Number>(block))) return false;
  for (auto hold = static_cast<Number>(block); hold != kNone;) {
    const auto [key, of, earlier, later, next] = holds_[hold];
    leave(hold);
    tell_removed(*key, holder(*key).has_value());
    drop(hold);
    hold = next;
  }
  return true;
}

void LinkedPool::move_keys(std::int64_t from, std::int64_t to) {
  const auto target = static_cast<Number>(to);
  const Hold main = holds_[from];
  leave(static_cast<Number>(from));
  drop(static_cast<Number>(from));
  join(target, *main.key);
  holds_.change(target).next = main.next;
  for (Number hold = main.next; hold != kNone; hold = holds_[hold].next) {
    leave(hold);
    holds_.change(hold).block = target;
    join(hold, *holds_[hold].key);
  }
}

void LinkedPool::take_all_keys() {
  for (Number block = 0; block < count_; ++block) {
    if (!has_key(block)) continue;
    for (Number hold = block; hold != kNone;) {
      const Number next = holds_[hold].next;
      ends_.change(*holds_[hold].key) = {};
      drop(hold);
      hold = next;
    }
  }
  tell({.kind = prefix::EventKind::kCleared});
}

// ---- Users ----

Status LinkedPool::hand_out(std::int64_t count, Ids& blocks, Ids& evicted) {
  if (count > 0) blocks.reserve(blocks.size() + static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const Number front = queue_.front();
    if (queue_.users(front) != 0)
      return fail(Code::kPrecondition, "block " + std::to_string(front) + " has users");
    queue_.prefetch(queue_.behind(front));
    if (take_key(front)) evicted.push_back(front);
    queue_.pin(front);
    blocks.push_back(front);
  }
  return {};
}

Status LinkedPool::release(IdsView blocks) {
  queue_.release(blocks.begin(), blocks.end(),
                 [&](Number block) { return has_key(block) && enable_caching_; });
  if (queue_.wrong() > 0 && !has(Quirk::kCountsBelowZero))
    return fail(Code::kPrecondition, "a block has no user");
  return {};
}

// ---- What is shown ----

Ids LinkedPool::queue() const {
  Ids queue;  // one block too many where the links are broken: they may be a circle
  for (Number block = queue_.front(); block != 0 && std::ssize(queue) <= free();
       block = queue_.behind(block))
    queue.push_back(block);
  return queue;
}

std::vector<std::pair<std::int64_t, Ids>> LinkedPool::cached() const {
  std::vector<std::pair<std::int64_t, Ids>> cached;
  for (std::int64_t key = 0; key < ends_.size(); ++key) {
    if (ends_[key].first == kNone) continue;
    Ids blocks;
    for (Number hold = ends_[key].first; hold != kNone; hold = holds_[hold].later)
      blocks.push_back(holds_[hold].block);
    cached.emplace_back(key, std::move(blocks));
  }
  return cached;
}

std::optional<std::string> LinkedPool::broken_invariant() const {
  std::int64_t free = 0;
  std::size_t held = 0;
  for (Number block = 0; block < count_; ++block) {
    if (block != 0 && refs(block) <= 0) ++free;
    if (!has_key(block)) continue;
    for (Number hold = block; hold != kNone; hold = holds_[hold].next, ++held)
      if (holds_[hold].block != block) return "a key of a block is another's";
  }
  const Ids shown = queue();
  if (free != this->free() || std::ssize(shown) != free) return "the queue's length is wrong";
  for (const std::int64_t block : shown)
    if (refs(block) > 0) return "a block in use is in the queue";
  for (const auto& [key, blocks] : cached()) {
    if (holder(key) != blocks.front()) return "a lookup does not find the first block";
    for (const std::int64_t block : blocks) {
      if (!carries(block, key)) return "a block is among those that carry a key that it has not";
      --held;
    }
  }
  if (held != 0) return "a block is not among those that carry its key";
  return std::nullopt;
}

void LinkedPool::commit_blocks() noexcept {
  queue_.commit();
  holds_.commit();
  ends_.commit();
  unused_before_ = unused_;
}

void LinkedPool::roll_back_blocks() noexcept {
  queue_.roll_back();
  holds_.roll_back();
  ends_.roll_back();
  unused_ = unused_before_;
}

}  // namespace kvo::optimized
