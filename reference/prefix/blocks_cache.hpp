// reference/prefix/blocks_cache.hpp: the reference of kind `prefix.blocks`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reference/prefix/block_pool.hpp"
#include "reference/prefix/blocks.hpp"
#include "reference/prefix/journal.hpp"

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

  /// What a request says, and what follows from that.
  struct Text {
    Tokens tokens;
    std::int64_t prompt = 0;  ///< tokens of the prompt
    std::string salt;
    std::optional<std::pair<std::string, std::string>> lora;  ///< name and path
    bool skip_reading = false;
    std::vector<Key> keys;  ///< [block]
  };
  /// Where a request stands.
  struct Progress {
    std::int64_t computed = 0;
    RequestStatus status = RequestStatus::kWaiting;
    std::int64_t in_flight = 0;
    std::optional<std::int64_t> boundary;
    std::int64_t preemptions = 0;
  };

  // What scripts look at. A request that was never made is empty.
  [[nodiscard]] const std::map<std::int64_t, std::int64_t>& requests() const { return rows_; }
  [[nodiscard]] const Text& text(std::int64_t request) const;
  [[nodiscard]] const Progress& progress(std::int64_t request) const;
  [[nodiscard]] std::int64_t keys() const { return std::ssize(contents_); }
  [[nodiscard]] const BlockPool& pool() const { return pool_; }

 private:
  /// What a request holds.
  struct Holding {
    Ids table;
    std::optional<std::int64_t> registered;  ///< blocks (PX-30); nothing: not tracked
  };
  /// What a key stands for: the block before it, its tokens, and extras (PX-10, PX-12, PX-13).
  using Content = std::tuple<std::int64_t, Tokens, std::string,
                             std::optional<std::pair<std::string, std::string>>>;

  [[nodiscard]] std::int64_t floor_blocks(std::int64_t tokens) const;
  [[nodiscard]] std::int64_t ceil_blocks(std::int64_t tokens) const;
  /// The row of a request, or -1.
  [[nodiscard]] std::int64_t find(std::int64_t request) const;
  void add_keys(Text& text);
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
  std::map<Content, std::int64_t> contents_;   ///< number of each content that was ever seen
  std::vector<std::int64_t> depths_;           ///< [key], blocks from the start of its chain
  std::map<std::int64_t, std::int64_t> rows_;  ///< of the tables below, by request
  Journaled<Text> texts_;
  Journaled<Progress> progress_;
  Journaled<Holding> holdings_;
  BlocksStatistics statistics_;
  Ids blocks_;             ///< of the last answer
  Ids evicted_;            ///< of the last answer
  std::vector<Key> keys_;  ///< of the last answer
};

}  // namespace kvo::prefix
