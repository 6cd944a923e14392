// optimized/groups/linked_pool.hpp: the pool of `groups.blocks`, of links and numbers. Users of
// blocks and the queue are those of `prefix.blocks` (free_queue.hpp).
//
// Words    hold   a key that a block carries: a node, linked with those of the other blocks that
//                 carry the key, in the order of their coming, and with those of its block.
// The hold of a block's main key has the number of the block: most blocks carry one key at most.
// Every operation costs what it changes.
// Source   rules PX-14 to PX-17, PX-29, PX-34 to PX-38; GR-3, GR-4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "optimized/prefix/free_queue.hpp"
#include "reference/groups/undo.hpp"
#include "reference/prefix/parts.hpp"

namespace kvo::optimized {

class LinkedPool final : public prefix::Pool {
 public:
  LinkedPool(std::int64_t count, bool enable_caching, bool events, QuirkSet<prefix::Quirk> quirks,
             std::int64_t groups);

  [[nodiscard]] std::int64_t count() const override { return count_; }
  [[nodiscard]] std::int64_t free() const override { return queue_.free(); }
  [[nodiscard]] std::int64_t refs(std::int64_t block) const override {
    return queue_.users(static_cast<Number>(block));
  }
  [[nodiscard]] std::int64_t unused(prefix::IdsView blocks) const override;
  [[nodiscard]] std::optional<std::int64_t> key(std::int64_t block) const override;
  [[nodiscard]] prefix::Ids keys_of(std::int64_t block) const override;
  [[nodiscard]] bool carries(std::int64_t block, std::int64_t key) const override;
  [[nodiscard]] std::int64_t carriers(prefix::IdsView blocks,
                                      const prefix::BlockKeys& keys) const override;
  [[nodiscard]] std::optional<std::int64_t> holder(std::int64_t key) const override;
  [[nodiscard]] prefix::Ids holders(const prefix::BlockKeys& keys) const override;

  [[nodiscard]] Status hand_out(std::int64_t count, prefix::Ids& blocks,
                                prefix::Ids& evicted) override;
  void pin(prefix::IdsView blocks) override { queue_.pin_all(blocks); }
  [[nodiscard]] Status release(prefix::IdsView blocks) override;
  void set_key(std::int64_t block, std::int64_t key) override;
  bool take_key(std::int64_t block) override;
  void move_keys(std::int64_t from, std::int64_t to) override;
  void take_all_keys() override;

  [[nodiscard]] prefix::Ids queue() const override;
  [[nodiscard]] std::vector<std::pair<std::int64_t, prefix::Ids>> cached() const override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  using Number = UndoableFreeQueue::Block;  ///< of a block, or of a hold
  static constexpr Number kNone = ~Number{0};

  /// A key that is stored as an optional is returned at once; g++ 12 stalls where it makes one.
  struct Hold {
    std::optional<std::int64_t> key = {};
    Number block = kNone;
    Number earlier = kNone;  ///< of the same key
    Number later = kNone;
    Number next = kNone;  ///< of the same block; of an unused one: the next unused one
  };
  /// The holds of a key.
  struct Ends {
    Number first = kNone;
    Number last = kNone;
    Number block = kNone;  ///< of the first hold, for lookups ask no more
  };

  [[nodiscard]] bool has_key(Number block) const { return holds_[block].key.has_value(); }
  void join(Number hold, std::int64_t key);
  void leave(Number hold);
  void drop(Number hold);
  void commit_blocks() noexcept override;
  void roll_back_blocks() noexcept override;

  std::int64_t count_;
  bool enable_caching_;
  UndoableFreeQueue queue_;
  groups::Rows<Hold> holds_;  ///< main ones by block, then further ones
  groups::Rows<Ends> ends_;   ///< [key]
  Number unused_ = kNone;     ///< of the further holds
  Number unused_before_ = kNone;
};

}  // namespace kvo::optimized
