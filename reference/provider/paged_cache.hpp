// reference/provider/paged_cache.hpp: the reference of `provider.paged`.
#pragma once

#include <memory>
#include <vector>

#include "reference/contract/values/stored_rows.hpp"
#include "reference/provider/paged.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract: it copies position by position, channel by channel.
class PagedCache : public Paged {
 public:
  /// Errors  as MakePaged says.
  static Result<std::unique_ptr<Paged>> make(const PagedOptions& options, QuirkSet<Quirk> quirks);

  PagedCache(const PagedOptions& options, QuirkSet<Quirk> quirks)
      : pool_(options.pool),
        geometry_(options.pool->geometry()),
        owner_(options.owner),
        quirks_(quirks),
        cursors_(static_cast<std::size_t>(options.num_layers)) {}

  [[nodiscard]] std::int64_t num_layers() const override {
    return static_cast<std::int64_t>(cursors_.size());
  }
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override;
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override;
  [[nodiscard]] Status reset() override { return free(); }
  [[nodiscard]] Status truncate(std::int64_t n) override;
  [[nodiscard]] Status free() override { return cut(0, 0); }
  [[nodiscard]] provider::ShownTable table() const override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 protected:
  /// A list that grows as in ZF-5: cutting it keeps capacity and the cut entries.
  struct BlockTable {
    std::vector<Nullable<std::int64_t>> entries = {};  ///< as many as the capacity
    std::int64_t size = 0;
    [[nodiscard]] std::int64_t capacity() const {
      return static_cast<std::int64_t>(entries.size());
    }
    [[nodiscard]] Nullable<std::int64_t>& operator[](std::int64_t i) {
      return entries[static_cast<std::size_t>(i)];
    }
    void reserve(std::int64_t needed);
  };

  [[nodiscard]] Status check_k(std::int64_t layer, const Rows& rows) const;
  [[nodiscard]] Status check_v(const Rows& rows) const;
  /// How the original aborts when it copies the first `fits` positions (ZF-33, ZF-34, ZF-40).
  [[nodiscard]] Status check_copy(std::int64_t layer, const Rows& rows, std::int64_t fits);
  void pin(const Tensor& k);
  /// Takes the blocks that `end` positions need.
  [[nodiscard]] Status extend(std::int64_t end);
  virtual void copy_position(std::int64_t layer, const Rows& rows, std::int64_t p);
  /// Frees the blocks beyond `needed` and lowers the cursors to n.
  [[nodiscard]] Status cut(std::int64_t n, std::int64_t needed);
  [[nodiscard]] std::int64_t blocks_of(std::int64_t positions) const {
    return positions == 0 ? 0 : (positions - 1) / geometry_.block_size + 1;
  }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::shared_ptr<block_pool::BlockPool> pool_;
  block_pool::Geometry geometry_;
  block_pool::Owner owner_;
  QuirkSet<Quirk> quirks_;
  std::int64_t channels_ = 0;
  std::int64_t dim_ = 0;
  BlockTable table_;
  std::vector<std::int64_t> cursors_;  ///< [layer], positions
};

}  // namespace kvo::provider
