// optimized/prefix/free_queue.hpp: the blocks of `prefix.blocks`: users, and the queue of free
// ones.
//
// Words    block 0   the null block. It is in no queue, so its links are the queue's two ends.
//          wrong     of a block: its count is below 0. It stays in the queue (PX-38).
// A block is in the queue exactly if its count is 0 or below: no operation looks for it there.
// Source   rules PX-14 to PX-17, PX-29, PX-34, PX-38.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvo::optimized {

class FreeQueue {
 public:
  using Block = std::uint32_t;

  /// Blocks 0 .. blocks - 1, all but block 0 in the queue in this order.
  explicit FreeQueue(std::int64_t blocks)
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

  /// A user comes; a free block leaves the queue, wherever it stands. The null block has none.
  void pin(Block block) {
    const std::int64_t one = block;
    pin_all({&one, 1});
  }
  /// The same for each. Blocks that were let go together stand together, the last one in front:
  /// such a run is cut out at once.
  void pin_all(std::span<const std::int64_t> blocks) {
    Block front = 0;  // of the run
    Block back = 0;
    for (const std::int64_t number : blocks) {
      const auto block = static_cast<Block>(number);
      if (block == 0) continue;
      const std::int64_t users = users_[block]++;
      if (users == -1) --wrong_;
      if (users != 0) continue;
      --free_;
      if (back == 0 || links_[front].before != block) {
        cut_out(front, back);
        back = block;
      }
      front = block;
    }
    cut_out(front, back);
  }
  /// A user goes. Returns  whether the block is to be put back now, by the caller.
  [[nodiscard]] bool unpin(Block block) {
    if (block == 0) return false;
    const std::int64_t users = --users_[block];
    if (users == -1) ++wrong_;
    return users == 0;
  }
  /// A user of each goes, from the last block to the first. Those that have none left go to the
  /// queue's end where `has_key(block)`, else to its front, the first of them in front.
  template <class HasKey>
  void release_from_the_end(std::span<const std::int64_t> blocks, const HasKey& has_key) {
    Block front = 0;
    Block last = links_[0].before;  // the end, whose links are written when the order is left
    const auto close = [&] {
      links_[last].after = 0;
      links_[0].before = last;
    };
    for (std::size_t i = blocks.size(); i > 0; --i) {
      const auto block = static_cast<Block>(blocks[i - 1]);
      if (!unpin(block)) continue;
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

 private:
  struct Link {
    Block before = 0;
    Block after = 0;
  };
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
};

}  // namespace kvo::optimized
