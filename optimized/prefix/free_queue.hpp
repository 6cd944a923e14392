// optimized/prefix/free_queue.hpp: the blocks of `prefix.blocks`: users, and the queue of free
// ones.
//
// Words    block 0   the null block. It is in no queue, so its links are the queue's two ends.
//          wrong     of a block: its count is below 0. It stays in the queue (PX-38).
// A block is in the queue exactly if its count is 0 or below: no operation looks for it there.
// Source   rules PX-14 to PX-17, PX-29, PX-34, PX-38.
#pragma once

#include <cstdint>
#include <vector>

namespace kvo::optimized {

class FreeQueue {
 public:
  using Block = std::uint32_t;

  /// Blocks 0 .. blocks - 1, all but block 0 in the queue in this order.
  explicit FreeQueue(std::int64_t blocks) : links_(static_cast<std::size_t>(blocks)) {
    const auto count = static_cast<Block>(blocks);
    for (Block block = 0; block < count; ++block)
      links_[block] = {.users = 0,
                       .before = block == 0 ? count - 1 : block - 1,
                       .after = block + 1 == count ? 0 : block + 1};
    free_ = blocks - 1;
  }

  [[nodiscard]] std::int64_t free() const { return free_; }
  [[nodiscard]] std::int64_t wrong() const { return wrong_; }
  [[nodiscard]] std::int64_t users(Block block) const { return links_[block].users; }
  /// The next to be handed out, and the one behind another; 0: the end.
  [[nodiscard]] Block front() const { return links_[0].after; }
  [[nodiscard]] Block behind(Block block) const { return links_[block].after; }

  /// A user comes; a free block leaves the queue, wherever it stands. The null block has none.
  void pin(Block block) {
    if (block == 0) return;
    Link& link = links_[block];
    if (link.users == 0) take_out(link);
    if (link.users < 0) --wrong_;
    ++link.users;
  }
  /// A user goes. Returns  whether the block is to be put back now, by the caller.
  [[nodiscard]] bool unpin(Block block) {
    if (block == 0) return false;
    const std::int64_t users = --links_[block].users;
    if (users == -1) ++wrong_;
    return users == 0;
  }
  /// Only counts, and only down to 0: false without a change where there is no user. The null
  /// block has as many as one likes.
  [[nodiscard]] bool count_down(Block block) {
    if (block != 0 && links_[block].users <= 0) return false;
    if (block != 0) --links_[block].users;
    return true;
  }
  void count_up(Block block) {
    if (block != 0) ++links_[block].users;
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
    std::int64_t users = 0;
    Block before = 0;
    Block after = 0;
  };
  void take_out(const Link& link) {
    links_[link.before].after = link.after;
    links_[link.after].before = link.before;
    --free_;
  }

  std::vector<Link> links_;
  std::int64_t free_ = 0;
  std::int64_t wrong_ = 0;
};

}  // namespace kvo::optimized
