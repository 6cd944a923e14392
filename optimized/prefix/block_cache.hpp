// optimized/prefix/block_cache.hpp: `prefix.blocks`, fast on a CPU.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optimized/prefix/content_index.hpp"
#include "optimized/prefix/event_log.hpp"
#include "optimized/prefix/free_queue.hpp"
#include "reference/prefix/blocks.hpp"
#include "reference/prefix/parts.hpp"

namespace kvo::optimized {

using prefix::ceil_of;
using prefix::floor_of;

class BlockRules {
 public:
  explicit BlockRules(const prefix::BlocksOptions& options)
      : options_(options),
        shift_(std::has_single_bit(static_cast<std::uint64_t>(options.block_size))
                   ? std::countr_zero(static_cast<std::uint64_t>(options.block_size))
                   : -1) {}

  /// Whole blocks of so many tokens, and blocks that they need. A decoded token asks a dozen times,
  /// and a shift takes a tenth of a division.
  [[nodiscard]] std::int64_t whole(std::int64_t tokens) const {
    return shift_ >= 0 ? tokens >> shift_ : floor_of(tokens, options_.block_size);
  }
  [[nodiscard]] std::int64_t covering(std::int64_t tokens) const {
    return whole(tokens + options_.block_size - 1);
  }

  /// Tokens that no later token sees, of a request with so many (PX-50).
  [[nodiscard]] std::int64_t skipped(std::int64_t tokens) const {
    switch (options_.attention) {
      case prefix::Attention::kSlidingWindow:
        return tokens < options_.window ? 0 : tokens - options_.window + 1;
      case prefix::Attention::kChunkedLocal:
        return floor_of(tokens, options_.chunk) * options_.chunk;
      default:
        return 0;
    }
  }
  [[nodiscard]] std::int64_t skipped_blocks(std::int64_t tokens) const {
    return options_.attention == prefix::Attention::kFull ? 0 : whole(skipped(tokens));
  }
  /// Blocks in a row that a hit under a window needs (PX-52).
  [[nodiscard]] std::int64_t run() const {
    return ceil_of(options_.window - 1, options_.block_size) + (options_.eagle ? 1 : 0);
  }
  /// Blocks that a request has at most at a time (PX-56).
  [[nodiscard]] std::int64_t admitted(std::int64_t blocks) const;
  /// Free blocks that admission leaves (PX-26).
  [[nodiscard]] std::int64_t watermark() const;
  /// Whether block `i` gets a key when it is registered (PX-54, PX-55). Requires  i >= 0.
  [[nodiscard]] bool keeps_key(std::int64_t i, std::int64_t prompt,
                               const std::optional<std::int64_t>& boundary) const;
  /// Whether every block does.
  [[nodiscard]] bool keeps_all() const {
    return options_.attention != prefix::Attention::kSlidingWindow ||
           (run() > 0 && !options_.retention);
  }

 private:
  [[nodiscard]] bool ends_at(std::int64_t i, std::int64_t token) const;

  prefix::BlocksOptions options_;
  int shift_;  ///< of a block size that is a power of two; else -1
};

/// A request knows the contents of its blocks by number, and a content its holders: a lookup is
/// one read a block. Blocks leave the queue and their key in constant time, for both are lists
/// whose links lie in the blocks. Requests keep the memory of their lists for those that come
/// under their number later.
class PrefixBlockCache final : public prefix::BlockCache {
 public:
  static Result<std::unique_ptr<prefix::BlockCache>> make(const prefix::BlocksOptions& options,
                                                          QuirkSet<prefix::Quirk> quirks);
  PrefixBlockCache(const prefix::BlocksOptions& options, QuirkSet<prefix::Quirk> quirks,
                   unsigned hash_bits = ContentIndex::kAllBits);

  [[nodiscard]] Result<std::span<const prefix::Key>> request(
      const prefix::MakeRequest& op) override;
  [[nodiscard]] Result<std::span<const prefix::Key>> append(std::int64_t request,
                                                            prefix::TokensView tokens) override;
  [[nodiscard]] Status set(const prefix::SetRequest& op) override;
  [[nodiscard]] Result<prefix::BlocksHit> match(std::int64_t request,
                                                std::optional<std::int64_t> max_length) override;
  [[nodiscard]] Result<prefix::Allotted> allocate(const prefix::Allocate& op) override;
  [[nodiscard]] Status cache(std::int64_t request, std::int64_t tokens) override;
  [[nodiscard]] Status skip(std::int64_t request, std::int64_t computed) override;
  [[nodiscard]] Status free(std::int64_t request) override;
  [[nodiscard]] Result<prefix::IdsView> pop(std::int64_t request) override;
  [[nodiscard]] Result<prefix::Allotted> take(std::int64_t count) override;
  [[nodiscard]] Status touch(prefix::IdsView blocks) override;
  [[nodiscard]] Status release(prefix::IdsView blocks) override;
  [[nodiscard]] Result<prefix::IdsView> evict(prefix::IdsView blocks) override;
  [[nodiscard]] Result<bool> reset() override;
  [[nodiscard]] std::optional<std::int64_t> lookup(const prefix::Key& key) const override;
  [[nodiscard]] prefix::IdsView table(std::int64_t request) const override;
  [[nodiscard]] std::int64_t cached_tokens(std::int64_t request) const override;
  [[nodiscard]] std::int64_t free_blocks() const override { return queue_.free(); }
  [[nodiscard]] Status record(std::int64_t request, std::int64_t hits) override;
  [[nodiscard]] prefix::BlocksStatistics stats() override;
  [[nodiscard]] std::span<const prefix::Event> events() override { return events_.take(); }
  [[nodiscard]] prefix::BlocksState state() const override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  using Id = ContentIndex::Id;
  using Block = FreeQueue::Block;
  static constexpr Id kNone = ContentIndex::kNone;

  struct Request {
    prefix::Tokens tokens = {};
    std::vector<Id> keys = {};  ///< contents of its first blocks
    Id root = kNone;
    ChainHash hash = {};  ///< of all contents so far
    std::int64_t prompt = 0;
    bool skip_reading = false;
    prefix::RequestStatus status = prefix::RequestStatus::kWaiting;
    std::int64_t computed = 0;
    std::int64_t in_flight = 0;
    std::int64_t preemptions = 0;
    std::optional<std::int64_t> boundary = std::nullopt;
    // These stay when the number gets another request.
    prefix::Ids table = {};
    bool tracked = false;
    std::int64_t registered = 0;  ///< blocks
  };
  /// The neighbours of a block among those that carry the same.
  struct Neighbours {
    Block earlier = kNone;
    Block later = kNone;
  };
  /// An allotment in blocks.
  struct Plan {
    std::int64_t computed = 0;  ///< tokens before the new ones: T
    std::int64_t within = 0;    ///< of these, as many as a request may have
    bool adopts = false;
    std::int64_t skipped = 0;  ///< blocks that adoption leaves out
    std::int64_t adopted = 0;  ///< length of the table behind adoption
    std::int64_t loaded = 0;   ///< and behind external tokens
    std::int64_t length = 0;   ///< and behind all
    std::int64_t wanted = 0;   ///< ceil(S / B)
    std::int64_t keyed = 0;    ///< blocks that registering reaches
    std::int64_t asked = 0;    ///< free blocks that must be there, now
  };

  [[nodiscard]] Request* find(std::int64_t request);
  [[nodiscard]] const Request* find(std::int64_t request) const;
  [[nodiscard]] std::int64_t whole_blocks(std::size_t tokens) const;
  /// Looks up the contents of the blocks behind those that `keys` has, up to `whole`.
  void add_keys(Request& request, std::vector<Id>& keys, const prefix::Token* tokens,
                std::size_t whole) noexcept;
  [[nodiscard]] std::span<const prefix::Key> names(std::span<const Id> keys);

  void full_match(const Request& request, std::int64_t blocks);
  [[nodiscard]] bool window_match(const Request& request, std::int64_t blocks);
  [[nodiscard]] bool chunk_match(const Request& request, std::int64_t max_length);

  [[nodiscard]] Status check_hits(const Request& request, const prefix::Allocate& what) const;
  [[nodiscard]] Plan plan(const Request& request, const prefix::Allocate& what) const;
  [[nodiscard]] std::int64_t needed(const Request& request, const prefix::Allocate& what,
                                    std::int64_t wanted, std::int64_t computed) const;
  [[nodiscard]] bool fits_whole(const Request& request, const prefix::Allocate& what,
                                const Plan& plan, std::int64_t spared) const;
  void make_room_for(Request& request, const Plan& plan);
  [[nodiscard]] std::optional<Code> refusal(const Request& request, const Plan& plan) const;
  [[nodiscard]] prefix::Allotted carry_out(Request& request, const Plan& planned) noexcept;
  [[nodiscard]] bool front_is_wrong(std::int64_t count) const;
  void adopt(Request& request, prefix::IdsView hits, std::int64_t skipped) noexcept;
  void hand_out(prefix::Ids& to) noexcept;
  void reserve_events(const Request& request, std::int64_t upto, std::size_t lost);
  void register_blocks(Request& request, std::int64_t upto) noexcept;
  [[nodiscard]] bool goes_below_zero(prefix::IdsView blocks) noexcept;
  [[nodiscard]] bool releases_below_zero(const Request& request, std::int64_t tokens) noexcept;
  [[nodiscard]] Status check_release(prefix::IdsView blocks);
  [[nodiscard]] Status check_letting_go(const Request& request, std::int64_t tokens);
  /// Returns  whether there was anything.
  bool let_go(Request& request, std::int64_t tokens) noexcept;
  /// Puts a block that has lost its last user back, behind `front` if it goes there.
  void put_back(Block block, Block& front) noexcept;
  void set_key(Block block, Id content) noexcept;
  void drop_key(Block block) noexcept;
  void tell_removed(Id content) noexcept;

  prefix::BlocksOptions options_;
  QuirkSet<prefix::Quirk> quirks_;
  BlockRules rules_;
  ContentIndex index_;
  FreeQueue queue_;
  std::vector<Id> carried_;             ///< [block], a content or kNone
  std::vector<Neighbours> neighbours_;  ///< [block]
  std::vector<std::unique_ptr<Request>> requests_;
  EventLog events_;
  bool released_by_hand_ = false;  ///< so that counts may have left the tables
  prefix::BlocksStatistics statistics_;
  // Lent to callers, or used within a call; they keep their memory.
  std::vector<prefix::Key> names_;
  std::vector<Id> fresh_;
  std::vector<ChainHash> hashes_;
  prefix::Ids shown_;
  prefix::Ids evicted_;
  std::string root_text_;
};

}  // namespace kvo::optimized
