// reference/prefix/radix_cache.hpp: the reference of kind `prefix.radix`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/prefix/journal.hpp"
#include "reference/prefix/radix.hpp"
#include "reference/prefix/slot_pool.hpp"
#include "reference/prefix/tree_cache.hpp"

namespace kvo::prefix {

/// A tree, an allocator, and requests over both.
class RadixManager : public RadixCache {
 public:
  static Result<std::unique_ptr<RadixCache>> make(const RadixConfig& config,
                                                  QuirkSet<Quirk> quirks);

  RadixManager(const RadixConfig& config, QuirkSet<Quirk> quirks);

  [[nodiscard]] Result<RadixHit> match(const MatchTokens& op) override;
  [[nodiscard]] Status touch(const TouchTokens& op) override;
  [[nodiscard]] Result<InsertReturns> insert(const Insert& op) override;
  [[nodiscard]] Result<RadixEvicted> evict(std::int64_t units) override;
  [[nodiscard]] Result<std::int64_t> lock(std::int64_t node) override;
  [[nodiscard]] Result<std::int64_t> unlock(std::int64_t node) override;
  [[nodiscard]] Status reset() override;
  [[nodiscard]] Result<IdsView> all_slots() override;
  [[nodiscard]] Result<IdsView> alloc(std::int64_t count) override;
  [[nodiscard]] Result<IdsView> alloc_extend(IdsView prefixes, IdsView lengths,
                                             IdsView last) override;
  [[nodiscard]] Result<IdsView> alloc_decode(IdsView lengths, IdsView last) override;
  [[nodiscard]] Status free(IdsView slots) override;
  [[nodiscard]] Status free_segment(IdsView slots, std::int64_t start) override;
  [[nodiscard]] Status group_begin() override;
  [[nodiscard]] Status group_end() override;
  [[nodiscard]] Status clear() override;
  [[nodiscard]] Result<IdsView> make_room(std::int64_t slots) override;
  [[nodiscard]] Status request(const FileRequest& op) override;
  [[nodiscard]] Result<RadixHit> admit(std::int64_t request) override;
  [[nodiscard]] Result<Extended> extend(std::int64_t request, std::int64_t tokens,
                                        TokensView append) override;
  [[nodiscard]] Result<CheckpointReturns> checkpoint(std::int64_t request) override;
  [[nodiscard]] Status withdraw(std::int64_t request) override;
  [[nodiscard]] Status finish(std::int64_t request, bool keep) override;
  [[nodiscard]] Result<ShowRowReturns> row(std::int64_t request) const override;
  [[nodiscard]] std::span<const Event> events() override { return tree_.take_events(); }
  [[nodiscard]] ShowTreeReturns state() const override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return tree_.broken_invariant();
  }

  void commit() noexcept;
  void roll_back() noexcept;

  struct Text {
    Tokens tokens;
    std::int64_t prompt = 0;  ///< tokens of the prompt
    std::optional<std::string> extra;
    std::string salt;
    std::int64_t priority = 0;
    [[nodiscard]] Namespace space() const { return {.extra = extra, .salt = salt}; }
  };
  struct Holding {
    std::optional<std::int64_t> node;  ///< that is locked; none: not admitted
    Ids slots;                         ///< matched, and behind them its own
    bool has_row = false;
    std::int64_t protected_ = 0;
    std::int64_t inserted = 0;
  };

  // What scripts look at. A request that was never made is empty.
  [[nodiscard]] const Text& text(std::int64_t request) const;
  [[nodiscard]] const Holding& holding(std::int64_t request) const;
  [[nodiscard]] const RadixTree& tree() const { return tree_; }
  [[nodiscard]] const SlotPool& slots() const { return slots_; }
  void prefer(IdsView slots) override { slots_.prefer(slots); }

 private:
  /// The number of a request in the tables below.
  /// Errors  kPrecondition: it was never made.
  [[nodiscard]] Result<std::int64_t> find(std::int64_t request) const;
  /// The same. Errors  kPrecondition: it has no row.
  [[nodiscard]] Result<std::int64_t> find_row(std::int64_t request) const;
  [[nodiscard]] RadixTree::Reached look_up(TokensView tokens, const Namespace& space);
  [[nodiscard]] Result<std::int64_t> evict_until(std::int64_t units);
  [[nodiscard]] Status room_for(std::int64_t slots);
  [[nodiscard]] Status file(const Text& text, Holding& held);
  /// Keeps what was taken, or the error kExhausted, which may have sorted lists.
  [[nodiscard]] Result<IdsView> taken(const Status& done, Transaction<RadixManager>& undertaking);

  RadixConfig config_;
  QuirkSet<Quirk> quirks_;
  RadixTree tree_;
  SlotPool slots_;
  std::map<std::int64_t, std::int64_t> rows_;  ///< of the tables below, by request
  Journaled<Text> texts_;
  Journaled<Holding> holdings_;
  Ids slots_out_;  ///< of the last answer
  Ids nodes_out_;  ///< of the last answer
};

}  // namespace kvo::prefix
