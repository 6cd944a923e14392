// reference/prefix/blocks_cache.hpp: the reference of kind `prefix.blocks`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/prefix/block_pool.hpp"
#include "reference/prefix/blocks.hpp"
#include "reference/prefix/journal.hpp"
#include "reference/prefix/requests.hpp"

namespace kvo::prefix {

/// Requests with their tables, and what their blocks contain. A key is the number of its content.
class BlockManager : public BlockCache {
 public:
  static Result<std::unique_ptr<BlockCache>> make(const BlocksOptions& options,
                                                  QuirkSet<Quirk> quirks);

  BlockManager(const BlocksOptions& options, QuirkSet<Quirk> quirks);

  [[nodiscard]] Result<std::span<const Key>> request(const MakeRequest& op) override;
  [[nodiscard]] Result<std::span<const Key>> append(std::int64_t request,
                                                    TokensView tokens) override;
  [[nodiscard]] Status set(const SetRequest& op) override;
  [[nodiscard]] Result<BlocksHit> match(std::int64_t request,
                                        std::optional<std::int64_t> max_length) override;
  [[nodiscard]] Result<Allotted> allocate(const Allocate& op) override;
  [[nodiscard]] Status cache(std::int64_t request, std::int64_t tokens) override;
  [[nodiscard]] Status skip(std::int64_t request, std::int64_t computed) override;
  [[nodiscard]] Status free(std::int64_t request) override;
  [[nodiscard]] Result<IdsView> pop(std::int64_t request) override;
  [[nodiscard]] Result<Allotted> take(std::int64_t count) override;
  [[nodiscard]] Status touch(IdsView blocks) override;
  [[nodiscard]] Status release(IdsView blocks) override;
  [[nodiscard]] Result<IdsView> evict(IdsView blocks) override;
  [[nodiscard]] Result<bool> reset() override;
  [[nodiscard]] std::optional<std::int64_t> lookup(const Key& key) const override;
  [[nodiscard]] IdsView table(std::int64_t request) const override;
  [[nodiscard]] std::int64_t cached_tokens(std::int64_t request) const override;
  [[nodiscard]] std::int64_t free_blocks() const override { return pool_.free(); }
  [[nodiscard]] Status record(std::int64_t request, std::int64_t hits) override;
  [[nodiscard]] BlocksStatistics stats() override;
  [[nodiscard]] std::span<const Event> events() override { return pool_.take_events(); }
  [[nodiscard]] BlocksState state() const override { return pool_.state(); }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

  void prefer(Ids blocks) override { pool_.prefer(std::move(blocks)); }

  void commit() noexcept;
  void roll_back() noexcept;

  using Text = Requests::Text;
  using Progress = Requests::Progress;

  // What scripts look at. A request that was never made is empty.
  [[nodiscard]] const std::map<std::int64_t, std::int64_t>& requests() const {
    return requests_.rows();
  }
  [[nodiscard]] const Text& text(std::int64_t request) const;
  [[nodiscard]] const Progress& progress(std::int64_t request) const;
  [[nodiscard]] std::int64_t keys() const { return requests_.keys(); }
  [[nodiscard]] const BlockPool& pool() const { return pool_; }

 private:
  /// What a request holds.
  struct Holding {
    Ids table;
    std::optional<std::int64_t> registered;  ///< blocks (PX-30); nothing: not tracked
  };

  [[nodiscard]] std::int64_t floor_blocks(std::int64_t tokens) const;
  [[nodiscard]] std::int64_t ceil_blocks(std::int64_t tokens) const;
  [[nodiscard]] std::optional<std::int64_t> holder(const Text& text, std::int64_t block) const;
  [[nodiscard]] std::int64_t run_needed() const;
  [[nodiscard]] Status look_up(const Text& text, std::int64_t max_length);
  [[nodiscard]] Status look_in_window(const Text& text, std::int64_t blocks);
  [[nodiscard]] Status look_in_chunk(const Text& text, std::int64_t max_length);

  [[nodiscard]] std::int64_t skipped(std::int64_t tokens) const;
  [[nodiscard]] Status may_adopt(std::int64_t row, const Allocate& asked) const;
  [[nodiscard]] bool enough(std::int64_t row, const Allocate& asked, std::int64_t computed,
                            std::int64_t blocks, std::int64_t reserved) const;
  [[nodiscard]] std::int64_t admission_cap() const;
  [[nodiscard]] Status adopt(std::int64_t row, const Allocate& asked, std::int64_t computed);
  [[nodiscard]] Status extend(std::int64_t row, std::int64_t blocks, Ids& handed_out);
  [[nodiscard]] Status register_blocks(std::int64_t row, std::int64_t tokens);
  [[nodiscard]] bool gets_key(const Text& text, const Progress& progress, std::int64_t block) const;
  [[nodiscard]] bool ends_run(std::int64_t boundary, std::int64_t block) const;
  void tell_stored(const Text& text, std::int64_t first, std::span<const std::int64_t> blocks,
                   std::int64_t end);
  [[nodiscard]] Status let_go(std::int64_t row, std::int64_t computed);

  BlocksOptions options_;
  QuirkSet<Quirk> quirks_;
  BlockPool pool_;
  Requests requests_;
  Journaled<Holding> holdings_;
  Ids blocks_;             ///< of the last answer
  Ids evicted_;            ///< of the last answer
  std::vector<Key> keys_;  ///< of the last answer
};

}  // namespace kvo::prefix
