#include "reference/prefix/block_pool.hpp"

#include <algorithm>

namespace kvo::prefix {

// ---- What all pools do ----

void Pool::tell(Event event) {
  if (keeps_events_) events_.push_back(std::move(event));
}

void Pool::tell_removed(std::int64_t key, bool is_held) {
  if (!keeps_events_) return;
  if (quirks_.has(Quirk::kRemovedWhileHeld) || !is_held)  // PX-40
    tell({.kind = EventKind::kRemoved, .keys = {key_of(key / groups_)}, .group = key % groups_});
}

std::span<const Event> Pool::take_events() {
  events_before_ = 0;
  taken_ = std::exchange(events_, {});
  return taken_;
}

Status Pool::evict(IdsView blocks, Ids& evicted) {
  const bool any = quirks_.has(Quirk::kEvictTakesAnyNumber);
  for (std::int64_t block : blocks) {
    if (any && block < 0) block += count();  // PX-47
    if (block < 0 || block >= count())
      return fail(any ? Code::kPrecondition : Code::kOutOfRange,
                  "blocks: " + std::to_string(block));
    if (take_key(block)) evicted.push_back(block);
  }
  return {};
}

void Pool::commit() noexcept {
  events_before_ = events_.size();
  commit_blocks();
}

void Pool::roll_back() noexcept {
  events_.resize(events_before_);
  roll_back_blocks();
}

// ---- The reference ----

BlockPool::BlockPool(std::int64_t count, bool enable_caching, bool events, QuirkSet<Quirk> quirks,
                     std::int64_t groups)
    : Pool(events, quirks, groups), enable_caching_(enable_caching) {
  for (std::int64_t i = 0; i < count; ++i) blocks_.add({});
  for (std::int64_t i = 1; i < count; ++i) enqueue(i, blocks_[0].before, 0);
  commit_blocks();
}

Ids BlockPool::keys_of(std::int64_t block) const {
  Ids keys = blocks_[block].more;
  if (blocks_[block].key) keys.insert(keys.begin(), *blocks_[block].key);
  return keys;
}

bool BlockPool::carries(std::int64_t block, std::int64_t key) const {
  const Block& there = blocks_[block];
  return there.key == key || std::ranges::find(there.more, key) != there.more.end();
}

std::int64_t BlockPool::unused(IdsView blocks) const {
  return std::ranges::count_if(blocks,
                               [&](std::int64_t block) { return block != 0 && refs(block) == 0; });
}

std::int64_t BlockPool::carriers(IdsView blocks, const BlockKeys& keys) const {
  std::int64_t i = 0;
  for (const std::int64_t block : blocks) {
    if (block != 0 && !carries(block, keys[i])) break;
    ++i;
  }
  return i;
}

const Ids& BlockPool::all_holders(std::int64_t key) const {
  static const Ids kNone;
  return key >= 0 && key < holders_.size() ? holders_[key] : kNone;
}

void BlockPool::enqueue(std::int64_t block, std::int64_t before, std::int64_t after) {
  blocks_.change(before).after = block;
  blocks_.change(after).before = block;
  Block& there = blocks_.change(block);
  there.before = before;
  there.after = after;
  there.queued = true;
  ++free_;
}

void BlockPool::dequeue(std::int64_t block) {
  Block& there = blocks_.change(block);
  blocks_.change(there.before).after = there.after;
  blocks_.change(there.after).before = there.before;
  there.queued = false;
  --free_;
}

void BlockPool::prefer(Ids blocks) {
  preferred_ = std::move(blocks);
  passed_ = 0;
}

std::int64_t BlockPool::next_free() {
  while (passed_ < preferred_.size()) {
    const std::int64_t block = preferred_[passed_++];
    if (block > 0 && block < count() && blocks_[block].queued) return block;
  }
  return blocks_[0].after;
}

std::optional<std::int64_t> BlockPool::holder(std::int64_t key) const {
  const Ids& all = all_holders(key);
  const auto preferred = [&](std::int64_t block) {
    return std::ranges::find(preferred_, block) != preferred_.end();
  };
  if (all.size() > 1)
    if (const auto found = std::ranges::find_if(all, preferred); found != all.end()) return *found;
  return all.empty() ? std::nullopt : std::optional(all.front());
}

Ids BlockPool::holders(const BlockKeys& keys) const {
  Ids blocks;
  for (std::int64_t i = 0; i < keys.count(); ++i) {
    const auto block = holder(keys[i]);
    if (!block) break;
    blocks.push_back(*block);
  }
  return blocks;
}

Status BlockPool::hand_out(std::int64_t count, Ids& blocks, Ids& evicted) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t front = next_free();
    if (blocks_[front].refs != 0)
      return fail(Code::kPrecondition, "block " + std::to_string(front) + " has users");
    dequeue(front);
    if (take_key(front)) evicted.push_back(front);
    blocks_.change(front).refs = 1;
    blocks.push_back(front);
  }
  return {};
}

void BlockPool::pin(IdsView blocks) {
  for (const std::int64_t block : blocks) {
    if (block == 0) continue;
    if (blocks_[block].refs == 0 && blocks_[block].queued) dequeue(block);
    ++blocks_.change(block).refs;
  }
}

Status BlockPool::release(IdsView blocks) {
  Ids without_key;
  Ids with_key;
  for (const std::int64_t block : blocks) {
    if (block == 0) continue;
    if (blocks_[block].refs <= 0 && !has(Quirk::kCountsBelowZero))
      return fail(Code::kPrecondition, "block " + std::to_string(block) + " has no user");
    if (--blocks_.change(block).refs != 0) continue;
    (blocks_[block].key && enable_caching_ ? with_key : without_key).push_back(block);
  }
  std::ranges::reverse(without_key);
  for (const std::int64_t block : without_key)
    if (!blocks_[block].queued) enqueue(block, 0, blocks_[0].after);
  for (const std::int64_t block : with_key)
    if (!blocks_[block].queued) enqueue(block, blocks_[0].before, 0);
  return {};
}

void BlockPool::set_key(std::int64_t block, std::int64_t key) {
  while (holders_.size() <= key) holders_.add({});
  holders_.change(key).push_back(block);
  Block& there = blocks_.change(block);
  if (there.key)
    there.more.insert(std::ranges::upper_bound(there.more, key), key);
  else
    there.key = key;
}

bool BlockPool::take_key(std::int64_t block) {
  const std::optional<std::int64_t> key = blocks_[block].key;
  if (!key) return false;
  std::erase(holders_.change(*key), block);
  tell_removed(*key, !holders_[*key].empty());
  for (const std::int64_t other : blocks_[block].more) {
    std::erase(holders_.change(other), block);
    tell_removed(other, !holders_[other].empty());
  }
  blocks_.change(block).key = std::nullopt;
  blocks_.change(block).more.clear();
  return true;
}

void BlockPool::move_keys(std::int64_t from, std::int64_t to) {
  const Ids keys = keys_of(from);
  blocks_.change(from).key = std::nullopt;
  blocks_.change(from).more.clear();
  for (const std::int64_t key : keys) {
    std::erase(holders_.change(key), from);
    set_key(to, key);
  }
}

void BlockPool::take_all_keys() {
  for (std::int64_t i = 0; i < count(); ++i)
    if (blocks_[i].key) {
      holders_.change(*blocks_[i].key).clear();
      for (const std::int64_t key : blocks_[i].more) holders_.change(key).clear();
      blocks_.change(i).key = std::nullopt;
      blocks_.change(i).more.clear();
    }
  tell({.kind = EventKind::kCleared});
}

Ids BlockPool::queue() const {
  Ids queue;
  for (std::int64_t i = count() > 0 ? blocks_[0].after : 0; i != 0; i = blocks_[i].after)
    queue.push_back(i);
  return queue;
}

BlocksState BlockPool::state() const {
  BlocksState state{.queue = queue(), .refs = {}, .keys = {}, .cached = {}};
  for (std::int64_t i = 0; i < count(); ++i) {
    state.refs.push_back(blocks_[i].refs);
    state.keys.push_back(blocks_[i].key ? std::optional(key_of(*blocks_[i].key)) : std::nullopt);
  }
  for (auto& [key, blocks] : cached()) state.cached.push_back({key_of(key), std::move(blocks)});
  return state;
}

std::vector<std::pair<std::int64_t, Ids>> BlockPool::cached() const {
  std::vector<std::pair<std::int64_t, Ids>> cached;
  for (std::int64_t key = 0; key < holders_.size(); ++key)
    if (!holders_[key].empty()) cached.emplace_back(key, holders_[key]);
  return cached;
}

std::optional<std::string> BlockPool::broken_invariant() const {
  std::int64_t queued = 0;
  for (std::int64_t i = 0; i < count(); ++i) {
    const Block& block = blocks_[i];
    queued += block.queued ? 1 : 0;
    if (block.queued != (i != 0 && block.refs <= 0)) return "a free block is not in the queue";
    for (const std::int64_t key : keys_of(i))
      if (std::ranges::count(holders_[key], i) != 1)
        return "a block is not among those that carry its key";
  }
  if (queued != free_ || std::ssize(queue()) != free_) return "the queue's length is wrong";
  return std::nullopt;
}

void BlockPool::commit_blocks() noexcept {
  blocks_.commit();
  holders_.commit();
  free_before_ = free_;
}

void BlockPool::roll_back_blocks() noexcept {
  blocks_.roll_back();
  holders_.roll_back();
  free_ = free_before_;
}

}  // namespace kvo::prefix
