// optimized/prefix/radix_cache.hpp: `prefix.radix`, fast on a CPU.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "optimized/prefix/radix_tree.hpp"
#include "optimized/prefix/slot_pool.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::optimized {

/// A tree and the slots that it and the requests hold. An operation finds out what it will do and
/// makes room for it, then does it, so that nothing has to be taken back.
class PrefixRadixCache final : public prefix::RadixCache {
 public:
  static Result<std::unique_ptr<prefix::RadixCache>> make(const prefix::RadixConfig& config,
                                                          QuirkSet<prefix::Quirk> quirks);
  PrefixRadixCache(const prefix::RadixConfig& config, QuirkSet<prefix::Quirk> quirks);

  [[nodiscard]] Result<prefix::RadixHit> match(const prefix::MatchTokens& op) override;
  [[nodiscard]] Status touch(const prefix::TouchTokens& op) override;
  [[nodiscard]] Result<prefix::InsertReturns> insert(const prefix::Insert& op) override;
  [[nodiscard]] Result<prefix::RadixEvicted> evict(std::int64_t units) override;
  [[nodiscard]] Result<std::int64_t> lock(std::int64_t node) override;
  [[nodiscard]] Result<std::int64_t> unlock(std::int64_t node) override;
  [[nodiscard]] Status reset() override;
  [[nodiscard]] Result<prefix::IdsView> all_slots() override;

  [[nodiscard]] Result<prefix::IdsView> alloc(std::int64_t count) override {
    return slots_.alloc(count);
  }
  [[nodiscard]] Result<prefix::IdsView> alloc_extend(prefix::IdsView prefixes,
                                                     prefix::IdsView lengths,
                                                     prefix::IdsView last) override {
    return slots_.alloc_extend(prefixes, lengths, last);
  }
  [[nodiscard]] Result<prefix::IdsView> alloc_decode(prefix::IdsView lengths,
                                                     prefix::IdsView last) override {
    return slots_.alloc_decode(lengths, last);
  }
  [[nodiscard]] Status free(prefix::IdsView slots) override { return slots_.free(slots); }
  [[nodiscard]] Status free_segment(prefix::IdsView slots, std::int64_t start) override {
    return slots_.free_segment(slots, start);
  }
  [[nodiscard]] Status group_begin() override { return slots_.group_begin(); }
  [[nodiscard]] Status group_end() override { return slots_.group_end(); }
  [[nodiscard]] Status clear() override;
  [[nodiscard]] Result<prefix::IdsView> make_room(std::int64_t slots) override;

  [[nodiscard]] Status request(const prefix::FileRequest& op) override;
  [[nodiscard]] Result<prefix::RadixHit> admit(std::int64_t request) override;
  [[nodiscard]] Result<prefix::Extended> extend(std::int64_t request, std::int64_t tokens,
                                                prefix::TokensView append) override;
  [[nodiscard]] Result<prefix::CheckpointReturns> checkpoint(std::int64_t request) override;
  [[nodiscard]] Status withdraw(std::int64_t request) override;
  [[nodiscard]] Status finish(std::int64_t request, bool keep) override;
  [[nodiscard]] Result<prefix::ShowRowReturns> row(std::int64_t request) const override;

  [[nodiscard]] std::span<const prefix::Event> events() override { return tree_.take_events(); }
  [[nodiscard]] prefix::ShowTreeReturns state() const override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return tree_.broken_invariant();
  }

 private:
  using Id = RadixTree::Id;
  using Walk = RadixTree::Walk;
  static constexpr Id kNone = RadixTree::kNone;

  struct Request {
    prefix::Tokens tokens = {};
    std::int64_t prompt = 0;  ///< tokens
    Namespaces::Id space = Namespaces::kNone;
    std::int64_t priority = 0;
    std::optional<std::int64_t> node = std::nullopt;  ///< that it has locked, where admitted
    prefix::Ids slots = {};
    bool has_row = false;
    std::int64_t protected_ = 0;
    std::int64_t inserted = 0;
  };
  /// What a request's tokens will be filed as.
  struct Filing {
    prefix::TokensView key = {};
    Walk walk = {};
    RadixTree::Room room = {};
    std::int64_t parted = 0;  ///< units of its prompt that part it from its output; 0: none
    // Held back from the first insert, so that the second one has them.
    std::optional<SpareRun> spare = std::nullopt;
    std::optional<SpareRun> other_spare = std::nullopt;
  };

  [[nodiscard]] Request* find(std::int64_t request) const;
  /// The node of a number that may be locked. Errors  kPrecondition.
  [[nodiscard]] Result<Id> known(std::int64_t number) const;
  /// A lookup whose slots go to a list. Returns  the node.
  Id look_up(prefix::TokensView tokens, Namespaces::Id space, prefix::Ids* slots);
  void prepare_evict(std::int64_t units);
  /// Adds to nodes_. Requires  that it is prepared. Returns  units.
  [[nodiscard]] Result<std::int64_t> evict_until(std::int64_t units);
  [[nodiscard]] Status may_end(const Request& request) const;
  [[nodiscard]] prefix::IdsView part(const Request& request, std::int64_t begin,
                                     std::int64_t end) const;
  void prepare(const Request& request, Filing& filing);
  void file(Request& request, Filing& filing) noexcept;
  [[nodiscard]] static Error never_made() {
    return fail(Code::kPrecondition, "request: it was never made");
  }

  prefix::RadixConfig config_;
  QuirkSet<prefix::Quirk> quirks_;
  RadixTree tree_;
  SlotPool slots_;
  std::vector<std::unique_ptr<Request>> requests_;
  // Lent to callers, or used within a call; they keep their memory.
  prefix::Ids shown_;
  prefix::Ids nodes_;
  std::vector<Id> going_;
};

}  // namespace kvo::optimized
