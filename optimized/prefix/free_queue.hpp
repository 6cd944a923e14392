// optimized/prefix/free_queue.hpp: the blocks of `prefix.blocks` and `groups.blocks`: users, and
// the queue of free ones.
//
// Words    block 0   the null block. It is in no queue, so its links are the queue's two ends.
//          wrong     of a block: its count is below 0. It stays in the queue (PX-38).
// A block is in the queue exactly if its count is 0 or below: no operation looks for it there.
// Source   rules PX-14 to PX-17, PX-29, PX-34, PX-38.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace kvo::optimized {

/// With kUndoes the queue remembers its changes, 8 bytes for each user of a block that comes or
/// goes: roll_back() takes them back.
template <bool kUndoes>
class BasicFreeQueue {
 public:
  using Block = std::uint32_t;

  /// Blocks 0 .. blocks - 1, all but block 0 in the queue in this order.
  explicit BasicFreeQueue(std::int64_t blocks)
      : users_(static_cast<std::size_t>(blocks)), links_(users_.size()) {
    const auto count = static_cast<Block>(blocks);
    for (Block block = 0; block < count; ++block)
      links_[block] = {.before = block == 0 ? count - 1 : block - 1,
                       .after = block + 1 == count ? 0 : block + 1};
    free_ = blocks - 1;
  }

  [[nodiscard]] std::int64_t free() const { return free_; }
  [[nodiscard]] std::int64_t wrong() const { return wrong_; }
  [[nodiscard]] std::int64_t users(Block block) const { return users_[block]; }
  /// The next to be handed out, and the one behind another; 0: the end.
  [[nodiscard]] Block front() const { return links_[0].after; }
  [[nodiscard]] Block behind(Block block) const { return links_[block].after; }

  // What brings and takes users throws std::bad_alloc with kUndoes; nothing has changed then.
  /// A user comes; a free block leaves the queue, wherever it stands. The null block has none.
  void pin(Block block) {
    const std::int64_t one = block;
    pin_all({&one, 1});
  }
  /// The same for each. Blocks that were let go together stand together, the last one in front:
  /// such a run is cut out at once.
  void pin_all(std::span<const std::int64_t> blocks) {
    reserve(blocks.size());
    Block front = 0;  // of the run
    Block back = 0;
    for (const std::int64_t number : blocks) {
      const auto block = static_cast<Block>(number);
      if (block == 0) continue;
      const std::int64_t users = users_[block]++;
      if (users == -1) --wrong_;
      if (users != 0) {
        note(block, kCame);
        continue;
      }
      --free_;
      if (back == 0 || links_[front].before != block) {
        cut_out(front, back);
        back = block;
      }
      note(block, links_[block].before);
      front = block;
    }
    cut_out(front, back);
  }
  /// A user goes. Returns  whether the block is to be put back now, by the caller.
  [[nodiscard]] bool unpin(Block block) {
    if (block == 0) return false;
    reserve(1);
    return is_last_user(block);
  }
  /// A user of each in [begin, end) goes, in this order. Those that have none left go to the
  /// queue's end where `has_key(block)`, else to its front, the first of them in front.
  template <class Iterator, class HasKey>
  void release(Iterator begin, Iterator end, const HasKey& has_key) {
    reserve(static_cast<std::size_t>(end - begin));
    Block front = 0;
    Block last = links_[0].before;  // the end, whose links are written when the order is left
    const auto close = [&] {
      links_[last].after = 0;
      links_[0].before = last;
    };
    for (; begin != end; ++begin) {
      const auto block = static_cast<Block>(*begin);
      if (block == 0 || !is_last_user(block)) continue;
      if (has_key(block)) {
        links_[last].after = block;
        links_[block].before = last;
        last = block;
        ++free_;
        continue;
      }
      close();
      put_behind(block, front);
      front = block;
      last = links_[0].before;
    }
    close();
  }
  /// Only counts, and only down to 0: false without a change where there is no user. The null
  /// block has as many as one likes.
  [[nodiscard]] bool count_down(Block block) {
    if (block != 0 && users_[block] <= 0) return false;
    if (block != 0) --users_[block];
    return true;
  }
  void count_up(Block block) {
    if (block != 0) ++users_[block];
  }
  /// Puts a block behind another one, or at the front behind block 0.
  void put_behind(Block block, Block before) {
    const Block after = links_[before].after;
    links_[block].before = before;
    links_[block].after = after;
    links_[before].after = block;
    links_[after].before = block;
    ++free_;
  }
  void put_last(Block block) { put_behind(block, links_[0].before); }

  void prefetch(Block block) const { __builtin_prefetch(&links_[block], 1); }

  void commit() noexcept { log_.noted = 0; }
  void roll_back() noexcept {
    while (log_.noted > 0) {
      const auto [block, what] = log_.changes[--log_.noted];
      if (what == kWent || what == kFreed) {
        if (++users_[block] == 0) --wrong_;
        if (what == kWent) continue;
        cut_out(block, block);
        --free_;
      } else {
        if (--users_[block] == -1) ++wrong_;
        if (what != kCame) put_behind(block, what);
      }
    }
  }

 private:
  // A change of a block: a user came or went. A block that left the queue has the block before it.
  using Change = std::pair<Block, Block>;
  static constexpr Block kCame = ~Block{0};
  static constexpr Block kWent = kCame - 1;
  static constexpr Block kFreed = kCame - 2;
  struct Log {
    std::vector<Change> changes;  ///< and memory for more
    std::size_t noted = 0;
  };
  struct NoLog {};

  struct Link {
    Block before = 0;
    Block after = 0;
  };
  void reserve(std::size_t more) {
    if constexpr (kUndoes)
      if (log_.changes.size() - log_.noted < more)
        log_.changes.resize(std::max(log_.noted + more, 2 * log_.changes.size()));
  }
  void note(Block block, Block what) {
    if constexpr (kUndoes) log_.changes[log_.noted++] = {block, what};
  }
  [[nodiscard]] bool is_last_user(Block block) {
    const std::int64_t users = --users_[block];
    if (users == -1) ++wrong_;
    note(block, users == 0 ? kFreed : kWent);
    return users == 0;
  }
  void cut_out(Block front, Block back) {
    if (back == 0) return;
    const Block before = links_[front].before;
    const Block after = links_[back].after;
    links_[before].after = after;
    links_[after].before = before;
  }

  std::vector<std::int64_t> users_;
  std::vector<Link> links_;
  std::int64_t free_ = 0;
  std::int64_t wrong_ = 0;
  [[no_unique_address]] std::conditional_t<kUndoes, Log, NoLog> log_;
};

using FreeQueue = BasicFreeQueue<false>;
using UndoableFreeQueue = BasicFreeQueue<true>;

}  // namespace kvo::optimized
