// optimized/groups/linked_pool.hpp: the pool of `groups.blocks`, of links and numbers.
//
// Words    hold   a key that a block carries: a node, linked with those of the other blocks that
//                 carry the key, in the order of their coming, and with those of its block.
// A block is in the queue exactly if its count is 0 or below, so no operation looks for it there.
// Block 0 is in no queue: its links are the two ends. Every operation costs what it changes.
// Source   rules PX-14 to PX-17, PX-29, PX-34 to PX-38; GR-3, GR-4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/groups/undo.hpp"
#include "reference/prefix/parts.hpp"

namespace kvo::optimized {

class LinkedPool final : public prefix::Pool {
 public:
  LinkedPool(std::int64_t count, bool enable_caching, bool events, QuirkSet<prefix::Quirk> quirks,
             std::int64_t groups);

  [[nodiscard]] std::int64_t count() const override { return users_.size(); }
  [[nodiscard]] std::int64_t free() const override { return free_; }
  [[nodiscard]] std::int64_t refs(std::int64_t block) const override { return users_[block]; }
  [[nodiscard]] std::optional<std::int64_t> key(std::int64_t block) const override;
  [[nodiscard]] prefix::Ids keys_of(std::int64_t block) const override;
  [[nodiscard]] bool carries(std::int64_t block, std::int64_t key) const override;
  [[nodiscard]] std::optional<std::int64_t> holder(std::int64_t key) const override;
  [[nodiscard]] prefix::Ids holders(prefix::IdsView keys) const override;

  [[nodiscard]] Status hand_out(std::int64_t count, prefix::Ids& blocks,
                                prefix::Ids& evicted) override;
  void pin(prefix::IdsView blocks) override;
  [[nodiscard]] Status release(prefix::IdsView blocks) override;
  void set_key(std::int64_t block, std::int64_t key) override;
  bool take_key(std::int64_t block) override;
  void move_keys(std::int64_t from, std::int64_t to) override;
  void take_all_keys() override;

  [[nodiscard]] prefix::Ids queue() const override;
  [[nodiscard]] std::vector<std::pair<std::int64_t, prefix::Ids>> cached() const override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  using Number = std::uint32_t;  ///< of a block, or of a hold
  static constexpr Number kNone = ~Number{0};

  /// The neighbours of a block in the queue.
  struct Link {
    Number before = 0;
    Number after = 0;
  };
  struct Hold {
    std::int64_t key = 0;
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

  /// What a block carries. Its main key is here, too, for most questions are about that. What is
  /// stored as an optional is returned at once; g++ 12 stalls where it makes one.
  struct Carried {
    std::optional<std::int64_t> main = {};  ///< key
    Number hold = kNone;                    ///< of the main key
  };

  void cut_out(Number front, Number back);
  void put_after(Number block, Number before);
  void join(Number hold, std::int64_t key, Number block);
  void leave(Number hold);
  void commit_blocks() noexcept override;
  void roll_back_blocks() noexcept override;

  bool enable_caching_;
  groups::Rows<std::int64_t> users_;  ///< [block]
  groups::Rows<Link> links_;          ///< [block]
  groups::Rows<Carried> carried_;     ///< [block]
  groups::Rows<Hold> holds_;
  groups::Rows<Ends> ends_;  ///< [key]
  Number unused_ = kNone;
  std::int64_t free_ = 0;
  Number unused_before_ = kNone;
  std::int64_t free_before_ = 0;
};

}  // namespace kvo::optimized
