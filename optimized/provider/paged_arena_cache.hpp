// optimized/provider/paged_arena_cache.hpp: `provider.paged`, fast on a CPU.
#pragma once

#include <memory>
#include <vector>

#include "optimized/memory/arena.hpp"
#include "reference/provider/paged.hpp"

namespace kvo::optimized {

/// Copies all positions of a block at once: a position is divided by the block size once a call,
/// and the pool is asked once a block. Needs a pool whose blocks are in host memory.
class PagedArenaCache final : public provider::Paged {
 public:
  /// Errors  as provider::MakePaged says.
  static Result<std::unique_ptr<provider::Paged>> make(const provider::PagedOptions& options,
                                                       QuirkSet<provider::Quirk> quirks);

  PagedArenaCache(const provider::PagedOptions& options, QuirkSet<provider::Quirk> quirks);

  [[nodiscard]] std::int64_t num_layers() const override {
    return static_cast<std::int64_t>(cursors_.size());
  }
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override;
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override;
  [[nodiscard]] Status reset() override { return cut(0, 0); }
  [[nodiscard]] Status truncate(std::int64_t n) override;
  [[nodiscard]] Status free() override { return cut(0, 0); }
  [[nodiscard]] provider::ShownTable table() const override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  /// Consecutive positions in one block.
  struct Run {
    std::int64_t position;  ///< of the first, counted from where the call began
    std::int64_t slot;      ///< of the first
    std::int64_t count;
    std::int64_t block;
  };
  /// Calls visit(run) for each block that holds positions [start, start + count).
  template <class Visit>
  void for_each_run(std::int64_t start, std::int64_t count, Visit&& visit) const;

  [[nodiscard]] Status check(std::int64_t layer, const provider::Rows& rows) const;
  /// How the original aborts when it copies `fits` positions (ZF-33, ZF-34, ZF-40).
  [[nodiscard]] Status check_copy(std::int64_t layer, const provider::Rows& rows,
                                  std::int64_t fits) const;
  [[nodiscard]] Status extend(std::int64_t blocks);
  void store(std::int64_t layer, const provider::Rows& rows, std::int64_t count);
  /// Rows that are no f32: stored, and gathered as they are stored.
  void store_narrow(std::int64_t layer, const provider::Rows& rows, std::int64_t count);
  [[nodiscard]] provider::KvPair gather_narrow(std::int64_t layer, std::int64_t cursor);
  /// Counts the positions of a run that is stored among those used.
  void note_used(const Run& run) const;
  [[nodiscard]] Status cut(std::int64_t n, std::int64_t needed);
  [[nodiscard]] std::int64_t blocks_of(std::int64_t positions) const {
    return positions == 0 ? 0 : (positions - 1) / block_size_ + 1;
  }
  void pin(const Tensor& k);
  [[nodiscard]] bool has(provider::Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::shared_ptr<block_pool::BlockPool> pool_;
  block_pool::Owner owner_;
  QuirkSet<provider::Quirk> quirks_;
  std::int64_t pool_layers_;
  std::int64_t block_size_;
  std::int64_t head_dim_;
  StorageFormat storage_;
  std::int64_t channels_ = 0;
  std::int64_t dim_ = 0;
  std::int64_t size_ = 0;              ///< blocks in the table
  std::vector<std::int64_t> entries_;  ///< [capacity] of ZF-5, kNull where nothing was written
  std::vector<std::int64_t> cursors_;  ///< [layer], positions
  ResultSides results_;
};

}  // namespace kvo::optimized
