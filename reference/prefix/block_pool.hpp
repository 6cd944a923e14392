// reference/prefix/block_pool.hpp: the blocks of the reference, their queue, and who carries a key.
// Contract `groups` has the same pool: there a block carries a key for one of several groups of
// layers, and may carry more than one. In this file a key is the number key * groups + group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/prefix/blocks.hpp"
#include "reference/prefix/journal.hpp"
#include "reference/prefix/requests.hpp"

namespace kvo::prefix {

/// A block. Those in the queue are linked in a ring; block 0 is between its back and its front.
struct Block {
  std::int64_t refs = 0;
  std::optional<std::int64_t> key = std::nullopt;
  Ids more = {};  ///< further keys, in ascending order; only in contract groups
  bool queued = false;
  std::int64_t before = 0;  ///< towards the front
  std::int64_t after = 0;
};

/// Blocks 0 to count - 1. Keys are numbers from 0 on. What calls change is taken back by
/// roll_back(), and for good after commit().
class BlockPool {
 public:
  BlockPool(std::int64_t count, bool enable_caching, bool events, QuirkSet<Quirk> quirks,
            std::int64_t groups = 1);

  [[nodiscard]] std::int64_t count() const { return blocks_.size(); }
  [[nodiscard]] std::int64_t free() const { return free_; }
  [[nodiscard]] const Block& operator[](std::int64_t block) const { return blocks_[block]; }
  /// The blocks that carry a key, first come first (PX-16).
  [[nodiscard]] const Ids& holders(std::int64_t key) const;

  /// Hands out the front of the queue to a user each, and adds it to `blocks`; what loses a key
  /// joins `evicted` (PX-14, PX-35). Requires  count <= free().
  /// Errors  kPrecondition: one of them has a count other than 0; roll back then.
  [[nodiscard]] Status hand_out(std::int64_t count, Ids& blocks, Ids& evicted);
  /// Until the next time, hands out these where they are free, in this order, before others, and
  /// says that they carry a key before others that do.
  void prefer(Ids blocks);
  /// The block that a lookup of the key finds: a preferred one, else the first (PX-16).
  [[nodiscard]] std::optional<std::int64_t> holder(std::int64_t key) const;
  /// PX-29.
  void pin(std::int64_t block);
  /// PX-34. Errors  without kCountsBelowZero kPrecondition: more often than its count; roll back
  /// then.
  [[nodiscard]] Status release(IdsView blocks);
  /// The block carries `key` from now on, behind the others that do; beside a key that it has.
  void set_key(std::int64_t block, std::int64_t key);
  /// Takes its keys off, if it has one (PX-36). Returns  whether it had.
  bool take_key(std::int64_t block);
  /// Takes the keys of each off, of any numbers (PX-36); those that had one join `evicted`.
  /// Errors  kOutOfRange, with kEvictTakesAnyNumber kPrecondition: no such block; roll back then.
  [[nodiscard]] Status evict(IdsView blocks, Ids& evicted);
  /// Moves all keys to a block without one, behind the others that carry them; no event.
  void move_keys(std::int64_t from, std::int64_t to);
  /// Takes all keys off (PX-37).
  void take_all_keys();
  /// Remembers an event, if events are kept.
  void tell(Event event);
  [[nodiscard]] std::span<const Event> take_events();

  [[nodiscard]] Ids queue() const;  ///< front first
  /// Keys that were ever set are below.
  [[nodiscard]] std::int64_t keys_end() const { return holders_.size(); }
  [[nodiscard]] BlocksState state() const;
  [[nodiscard]] std::optional<std::string> broken_invariant() const;

  void commit() noexcept;
  void roll_back() noexcept;

 private:
  void enqueue(std::int64_t block, std::int64_t before, std::int64_t after);
  void dequeue(std::int64_t block);
  void tell_removed(std::int64_t key);
  /// The block that is handed out next.
  [[nodiscard]] std::int64_t next_free();

  bool enable_caching_;
  bool keeps_events_;
  std::int64_t groups_;
  QuirkSet<Quirk> quirks_;
  Journaled<Block> blocks_;
  Journaled<Ids> holders_;  ///< [key]
  Ids preferred_;
  std::size_t passed_ = 0;  ///< preferred blocks that were handed out, or were not free
  std::int64_t free_ = 0;
  std::vector<Event> events_;
  std::vector<Event> taken_;  ///< by the last take_events
  std::int64_t free_before_ = 0;
  std::size_t events_before_ = 0;
};

}  // namespace kvo::prefix
