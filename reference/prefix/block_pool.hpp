// reference/prefix/block_pool.hpp: the pool of the references. Contract `groups` has the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/prefix/blocks.hpp"
#include "reference/prefix/journal.hpp"
#include "reference/prefix/parts.hpp"

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

class BlockPool final : public Pool {
 public:
  BlockPool(std::int64_t count, bool enable_caching, bool events, QuirkSet<Quirk> quirks,
            std::int64_t groups = 1);

  [[nodiscard]] std::int64_t count() const override { return blocks_.size(); }
  [[nodiscard]] std::int64_t free() const override { return free_; }
  [[nodiscard]] const Block& operator[](std::int64_t block) const { return blocks_[block]; }
  [[nodiscard]] std::int64_t refs(std::int64_t block) const override { return blocks_[block].refs; }
  [[nodiscard]] std::optional<std::int64_t> key(std::int64_t block) const override {
    return blocks_[block].key;
  }
  [[nodiscard]] Ids keys_of(std::int64_t block) const override;
  [[nodiscard]] std::int64_t unused(IdsView blocks) const override;
  [[nodiscard]] bool carries(std::int64_t block, std::int64_t key) const override;
  [[nodiscard]] std::int64_t carriers(IdsView blocks, const BlockKeys& keys) const override;
  [[nodiscard]] std::optional<std::int64_t> holder(std::int64_t key) const override;
  [[nodiscard]] Ids holders(const BlockKeys& keys) const override;

  [[nodiscard]] Status hand_out(std::int64_t count, Ids& blocks, Ids& evicted) override;
  void prefer(Ids blocks) override;
  void pin(IdsView blocks) override;
  [[nodiscard]] Status release(IdsView blocks) override;
  void set_key(std::int64_t block, std::int64_t key) override;
  bool take_key(std::int64_t block) override;
  void move_keys(std::int64_t from, std::int64_t to) override;
  void take_all_keys() override;

  [[nodiscard]] Ids queue() const override;
  [[nodiscard]] std::vector<std::pair<std::int64_t, Ids>> cached() const override;
  [[nodiscard]] BlocksState state() const;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  /// The blocks that carry a key, first come first (PX-16).
  [[nodiscard]] const Ids& all_holders(std::int64_t key) const;
  void enqueue(std::int64_t block, std::int64_t before, std::int64_t after);
  void dequeue(std::int64_t block);
  /// The block that is handed out next.
  [[nodiscard]] std::int64_t next_free();
  void commit_blocks() noexcept override;
  void roll_back_blocks() noexcept override;

  bool enable_caching_;
  Journaled<Block> blocks_;
  Journaled<Ids> holders_;  ///< [key]
  Ids preferred_;
  std::size_t passed_ = 0;  ///< preferred blocks that were handed out, or were not free
  std::int64_t free_ = 0;
  std::int64_t free_before_ = 0;
};

}  // namespace kvo::prefix
