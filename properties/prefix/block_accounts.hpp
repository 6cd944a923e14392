// properties/prefix/block_accounts.hpp: what a history knows of the blocks of a pool.
//
// Words    unseen     handed out without being told: blocks for tokens that are loaded (PX-27).
//                     Only how many are in use is known, and which keys they may carry.
//          doubtful   of a key: the block may carry it, or none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "properties/prefix/contents.hpp"
#include "reference/prefix/blocks.hpp"

namespace kvo::prefix {

/// A block in a table that was handed out unseen.
inline constexpr std::int64_t kUnseen = -1;

class BlockAccounts {
 public:
  using Words = std::optional<std::string>;

  /// Blocks 0 to count - 1, all but the null block free.
  explicit BlockAccounts(std::int64_t count) : count_(count) {}

  /// Blocks were handed out, `unseen` others beside them, and `evicted` lost their keys thereby.
  /// Words where one of them was in use, or had another key than was told.
  [[nodiscard]] Words hand_out(const Ids& blocks, std::int64_t unseen, const Ids& evicted);
  /// One more user, and one less. Null blocks are passed over; an unseen one has one user less.
  void pin(std::int64_t block);
  void unpin(std::int64_t block);
  /// A block of a table turns out to be this one.
  void found(std::int64_t block);
  [[nodiscard]] std::int64_t users(std::int64_t block) const;

  /// Is called when the first block carries a key, and when the last one does no longer.
  using Watch = std::function<void(std::int64_t key, bool carried)>;
  void watch(Watch watch) { watch_ = std::move(watch); }

  /// The block carries a key from now on, perhaps. False where it may carry another one: nothing
  /// more can be said of the pool.
  [[nodiscard]] bool set_key(std::int64_t block, std::int64_t key, bool doubtful);
  /// The key of a block is taken off. `told`: the cache says that it had one. Words if not so.
  [[nodiscard]] Words take_key(std::int64_t block, bool told);
  void take_all_keys();
  /// Whether that block may carry that key; it does from now on.
  [[nodiscard]] bool may_carry(std::int64_t block, std::int64_t key);
  /// The key that a block carries for sure.
  [[nodiscard]] std::optional<std::int64_t> key(std::int64_t block) const;
  /// Whether some block carries a key: for sure, or perhaps.
  [[nodiscard]] bool carried(std::int64_t key) const;
  [[nodiscard]] bool perhaps_carried(std::int64_t key) const;
  /// Whether each key is known for sure.
  [[nodiscard]] bool keys_are_known() const { return doubtful_ == 0 && unseen_keys_.empty(); }
  /// Keys that blocks carry, if each is known for sure, with the number of blocks.
  [[nodiscard]] std::unordered_map<std::int64_t, std::int64_t> carriers() const;

  /// What each place of a block holds; empty: not known.
  [[nodiscard]] std::vector<Content>& rows(std::int64_t block) { return blocks_[block].rows; }

  /// Free blocks, at least and at most.
  [[nodiscard]] std::int64_t least_free() const { return count_ - 1 - pinned_ - unseen_; }
  [[nodiscard]] std::int64_t most_free() const { return count_ - 1 - pinned_; }
  [[nodiscard]] std::int64_t unseen() const { return unseen_; }

  /// Judges the whole pool as it is shown, and learns from it what was not known.
  [[nodiscard]] Words compare(const ShowBlocks::Returns& shown);

 private:
  struct Block {
    std::int64_t users = 0;
    std::optional<std::int64_t> key = std::nullopt;
    bool doubtful = false;
    std::vector<Content> rows = {};
  };

  void forget_key(Block& block, std::int64_t number);
  [[nodiscard]] Words compare_key(std::int64_t block, const Nullable<std::int64_t>& shown);

  std::int64_t count_;
  Watch watch_ = nullptr;
  std::unordered_map<std::int64_t, Block> blocks_ = {};
  std::unordered_map<std::int64_t, std::set<std::int64_t>> carriers_ = {};  ///< [key], perhaps
  std::int64_t pinned_ = 0;                                                 ///< blocks with users
  std::int64_t unseen_ = 0;  ///< uses of unseen blocks
  std::int64_t doubtful_ = 0;
  std::set<std::int64_t> unseen_keys_ = {};
};

/// Words where a pool as it is shown contradicts itself (PX-14 to PX-17): each block but the null
/// block is either free and queued once or pinned, and keys are where the index says.
[[nodiscard]] std::optional<std::string> wrong_pool(const ShowBlocks::Returns& shown,
                                                    std::int64_t count);

}  // namespace kvo::prefix
