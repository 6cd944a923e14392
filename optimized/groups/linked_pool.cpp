#include "optimized/groups/linked_pool.hpp"

#include <algorithm>

namespace kvo::optimized {

using prefix::Ids;
using prefix::IdsView;
using prefix::Quirk;

LinkedPool::LinkedPool(std::int64_t count, bool enable_caching, bool events, QuirkSet<Quirk> quirks,
                       std::int64_t groups)
    : Pool(events, quirks, groups),
      enable_caching_(enable_caching),
      users_(std::vector<std::int64_t>(static_cast<std::size_t>(count))),
      carried_(std::vector<Carried>(static_cast<std::size_t>(count))),
      free_(count - 1),
      free_before_(count - 1) {
  const auto blocks = static_cast<Number>(count);
  std::vector<Link> links(blocks);
  for (Number block = 0; block < blocks; ++block)
    links[block] = {.before = block == 0 ? blocks - 1 : block - 1,
                    .after = block + 1 == blocks ? 0 : block + 1};
  links_ = groups::Rows<Link>(std::move(links));
}

std::optional<std::int64_t> LinkedPool::key(std::int64_t block) const {
  return carried_[block].main;
}

Ids LinkedPool::keys_of(std::int64_t block) const {
  Ids keys;
  for (Number hold = carried_[block].hold; hold != kNone; hold = holds_[hold].next)
    keys.push_back(holds_[hold].key);
  return keys;
}

bool LinkedPool::carries(std::int64_t block, std::int64_t key) const {
  const Carried& there = carried_[block];
  if (!there.main || *there.main == key) return there.main.has_value();
  Number hold = holds_[there.hold].next;
  while (hold != kNone && holds_[hold].key != key) hold = holds_[hold].next;
  return hold != kNone;
}

std::optional<std::int64_t> LinkedPool::holder(std::int64_t key) const {
  if (key >= ends_.size() || ends_[key].block == kNone) return std::nullopt;
  return ends_[key].block;
}

Ids LinkedPool::holders(IdsView keys) const {
  Ids blocks(keys.size());
  std::size_t found = 0;
  for (; found < keys.size(); ++found) {
    const std::int64_t key = keys[found];
    if (key >= ends_.size() || ends_[key].block == kNone) break;
    blocks[found] = ends_[key].block;
  }
  blocks.resize(found);
  return blocks;
}

// ---- The queue ----

// Takes a run out of the queue.
void LinkedPool::cut_out(Number front, Number back) {
  if (back == 0) return;
  const Number before = links_[front].before;
  const Number after = links_[back].after;
  links_.change(before).after = after;
  links_.change(after).before = before;
}

void LinkedPool::put_after(Number block, Number before) {
  const Number after = links_[before].after;
  links_.change(block) = {.before = before, .after = after};
  links_.change(before).after = block;
  links_.change(after).before = block;
  ++free_;
}

Status LinkedPool::hand_out(std::int64_t count, Ids& blocks, Ids& evicted) {
  if (count <= 0) return {};
  blocks.reserve(blocks.size() + static_cast<std::size_t>(count));
  Number front = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    front = links_[front].after;
    if (users_[front] != 0)
      return fail(Code::kPrecondition, "block " + std::to_string(front) + " has users");
    if (take_key(front)) evicted.push_back(front);
    users_.change(front) = 1;
    blocks.push_back(front);
  }
  cut_out(links_[0].after, front);
  free_ -= count;
  return {};
}

// Blocks that were released together are together in the queue, the last one in front: such a run
// is cut out at once.
void LinkedPool::pin(IdsView blocks) {
  Number front = 0;  // of the run
  Number back = 0;
  for (const std::int64_t number : blocks) {
    const auto block = static_cast<Number>(number);
    if (block == 0) continue;
    if (users_.change(block)++ != 0) continue;
    --free_;
    if (back == 0 || links_[front].before != block) {
      cut_out(front, back);
      back = block;
    }
    front = block;
  }
  cut_out(front, back);
}

// With a key to the end of the queue in this order, without one to its front in this order. The
// link at the end is written when all are there.
Status LinkedPool::release(IdsView blocks) {
  Number front = 0;
  Number last = links_[0].before;
  const auto close = [&] {
    if (last == links_[0].before) return;
    links_.change(last).after = 0;
    links_.change(0).before = last;
  };
  for (const std::int64_t number : blocks) {
    const auto block = static_cast<Number>(number);
    if (block == 0) continue;
    if (users_[block] <= 0 && !has(Quirk::kCountsBelowZero))
      return fail(Code::kPrecondition, "block " + std::to_string(block) + " has no user");
    if (--users_.change(block) != 0) continue;
    if (carried_[block].hold != kNone && enable_caching_) {
      links_.change(last).after = block;
      links_.change(block).before = last;
      last = block;
      ++free_;
    } else {
      close();
      put_after(block, front);
      front = block;
      last = links_[0].before;
    }
  }
  close();
  return {};
}

// ---- Keys ----

// After the other holds of the key. Its `next` is the caller's.
void LinkedPool::join(Number hold, std::int64_t key, Number block) {
  ends_.grow(key + 1);
  const Number last = ends_[key].last;
  Hold& there = holds_.change(hold);
  there.key = key;
  there.block = block;
  there.earlier = last;
  there.later = kNone;
  if (last != kNone) holds_.change(last).later = hold;
  Ends& ends = ends_.change(key);
  if (last == kNone) {
    ends.first = hold;
    ends.block = block;
  }
  ends.last = hold;
}

void LinkedPool::leave(Number hold) {
  const Hold& there = holds_[hold];
  const Number earlier = there.earlier;
  const Number later = there.later;
  const std::int64_t key = there.key;
  if (earlier != kNone) holds_.change(earlier).later = later;
  if (later != kNone) holds_.change(later).earlier = earlier;
  if (earlier != kNone && later != kNone) return;
  Ends& ends = ends_.change(key);
  if (earlier == kNone) {
    ends.first = later;
    ends.block = later == kNone ? kNone : holds_[later].block;
  }
  if (later == kNone) ends.last = earlier;
}

void LinkedPool::set_key(std::int64_t number, std::int64_t key) {
  const auto block = static_cast<Number>(number);
  Number hold = unused_;
  if (hold == kNone) {
    hold = static_cast<Number>(holds_.size());
    holds_.grow(holds_.size() + 1);
  } else {
    unused_ = holds_[hold].next;
  }
  join(hold, key, block);
  Number before = carried_[block].hold;  // the main key stays the first
  if (before == kNone) {
    carried_.change(block) = {.main = key, .hold = hold};
    holds_.change(hold).next = kNone;
    return;
  }
  for (Number next = holds_[before].next; next != kNone && holds_[next].key < key;
       next = holds_[next].next)
    before = next;
  holds_.change(hold).next = holds_[before].next;
  holds_.change(before).next = hold;
}

bool LinkedPool::take_key(std::int64_t block) {
  Number hold = carried_[block].hold;
  if (hold == kNone) return false;
  carried_.change(block) = {};
  while (hold != kNone) {
    leave(hold);
    const std::int64_t key = holds_[hold].key;
    tell_removed(key, holder(key).has_value());
    const Number next = holds_[hold].next;
    holds_.change(hold).next = std::exchange(unused_, hold);
    hold = next;
  }
  return true;
}

void LinkedPool::move_keys(std::int64_t from, std::int64_t to) {
  const auto block = static_cast<Number>(to);
  const Carried moved = carried_[from];
  carried_.change(from) = {};
  carried_.change(to) = moved;
  for (Number hold = moved.hold; hold != kNone; hold = holds_[hold].next) {
    leave(hold);
    join(hold, holds_[hold].key, block);
  }
}

void LinkedPool::take_all_keys() {
  for (std::int64_t block = 0; block < users_.size(); ++block) {
    Number hold = carried_[block].hold;
    if (hold == kNone) continue;
    carried_.change(block) = {};
    while (hold != kNone) {
      ends_.change(holds_[hold].key) = {};
      const Number next = holds_[hold].next;
      holds_.change(hold).next = std::exchange(unused_, hold);
      hold = next;
    }
  }
  tell({.kind = prefix::EventKind::kCleared});
}

// ---- What is shown ----

Ids LinkedPool::queue() const {
  Ids queue;
  for (Number block = links_[0].after; block != 0; block = links_[block].after)
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
  for (std::int64_t block = 0; block < users_.size(); ++block) {
    if (block != 0 && users_[block] <= 0) ++free;
    for (Number hold = carried_[block].hold; hold != kNone; hold = holds_[hold].next, ++held)
      if (holds_[hold].block != block) return "a key of a block is another's";
  }
  const Ids shown = queue();
  if (free != free_ || std::ssize(shown) != free_) return "the queue's length is wrong";
  for (const std::int64_t block : shown)
    if (users_[block] > 0) return "a block in use is in the queue";
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
  users_.commit();
  links_.commit();
  carried_.commit();
  holds_.commit();
  ends_.commit();
  unused_before_ = unused_;
  free_before_ = free_;
}

void LinkedPool::roll_back_blocks() noexcept {
  users_.roll_back();
  links_.roll_back();
  carried_.roll_back();
  holds_.roll_back();
  ends_.roll_back();
  unused_ = unused_before_;
  free_ = free_before_;
}

}  // namespace kvo::optimized
