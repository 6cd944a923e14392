// properties/prefix/radix_history.hpp: the history of a tree of token runs over a pool of slots.
//
// Known are what was put, with its slots, who has locked what, and which slots are handed out.
// What is evicted first is not: what is told is taken, if it may go. Judged
// hits      are the longest prefix that was put and not evicted since, in whole pages; their slots
//           are those that were put, and still hold the rows of these tokens (PX-64 to PX-66).
// eviction  takes leaves that nobody has locked, so that a prefix stays; as many as are asked for
//           and no leaf more, and fewer only where no other may go (PX-70, PX-72, PX-83).
// slots     those that are handed out were free, and go on where a page is open; they are refused
//           only where too few are free (PX-80, PX-81).
// figures   evictable and protected units are all that was put; free slots and those handed out are
//           the whole pool; locks, nodes, leaves, rows, and who follows the events say the same.
// Skipped   in profile original, what follows an unlock without a lock, or one of a node that has
//           gone (PX-79); of the slots, what follows one that was free and is freed (PX-85). In
//           both, rows after slots that a request has were cleared (PX-80), and rows of pages that
//           two have because a caller inserted or freed them by hand; requests of a tree that keeps
//           nothing (PX-76).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "properties/prefix/contents.hpp"
#include "properties/prefix/tree_accounts.hpp"
#include "properties/runner/oracle.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::prefix {

class RadixHistory final : public Oracle {
 public:
  RadixHistory(RadixConfig config, QuirkSet<Quirk> quirks)
      : config_(config),
        quirks_(quirks),
        tree_(config_.page_size),
        slots_(config_.slots, config_.page_size) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override;

 private:
  /// A request.
  struct Known {
    std::vector<Content> prefixes = {};  ///< [tokens]
    std::int64_t prompt = 0;
    std::optional<std::int64_t> node = std::nullopt;  ///< that is locked, once admitted
    bool has_row = false;
    Ids row = {};
    std::int64_t protected_ = 0;
    std::int64_t inserted = 0;

    [[nodiscard]] std::int64_t tokens() const { return std::ssize(prefixes) - 1; }
  };

  // ---- Operations ----

  Words observe(const MatchTokens& op, const Observation& seen);
  Words observe(const TouchTokens& op, const Observation& seen);
  Words observe(const Insert& op, const Observation& seen);
  Words observe(const EvictUnits& op, const Observation& seen);
  Words observe(const Lock& op, const Observation& seen);
  Words observe(const Unlock& op, const Observation& seen);
  Words observe(const ResetTree& op, const Observation& seen);
  Words observe(const AllSlots& op, const Observation& seen);
  Words observe(const AllocSlots& op, const Observation& seen);
  Words observe(const AllocExtend& op, const Observation& seen);
  Words observe(const AllocDecode& op, const Observation& seen);
  Words observe(const FreeSlots& op, const Observation& seen);
  Words observe(const FreeSegment& op, const Observation& seen);
  Words observe(const GroupBegin& op, const Observation& seen);
  Words observe(const GroupEnd& op, const Observation& seen);
  Words observe(const ClearSlots& op, const Observation& seen);
  Words observe(const MakeRoom& op, const Observation& seen);
  Words observe(const FileRequest& op, const Observation& seen);
  Words observe(const Admit& op, const Observation& seen);
  Words observe(const Extend& op, const Observation& seen);
  Words observe(const Checkpoint& op, const Observation& seen);
  Words observe(const Withdraw& op, const Observation& seen);
  Words observe(const Finish& op, const Observation& seen);
  Words observe(const ShowRow& op, const Observation& seen);
  Words observe(const ShowTree& op, const Observation& seen);
  Words observe(const TakeEvents& op, const Observation& seen);

  Words lose_track() {
    lost_ = true;
    return skip();
  }

  // ---- What follows ----

  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  /// Of so many tokens, in whole pages (PX-62, PX-78).
  [[nodiscard]] std::int64_t pages(std::int64_t tokens) const;
  [[nodiscard]] Content start(const std::optional<std::string>& extra,
                              const std::optional<std::string>& salt);
  /// The pages of the first tokens.
  [[nodiscard]] Path path(const std::vector<Content>& prefixes, std::int64_t tokens) const;
  template <class T>
  [[nodiscard]] std::vector<Content> prefixes_of(const T& op);
  [[nodiscard]] Words wrong_rows(const std::vector<Content>& prefixes, const Ids& slots) const;
  /// Whether the row of a request has a slot of that page of the pool.
  [[nodiscard]] bool in_a_row(std::int64_t pool_page) const;
  [[nodiscard]] Words wrong_hit(const std::vector<Content>& prefixes, std::int64_t tokens,
                                const FoundPrefix& hit);
  void write(const std::vector<Content>& prefixes, const Ids& slots, std::int64_t begin);
  void forget_rows(const Ids& slots) {
    for (const std::int64_t slot : slots) rows_.erase(slot);
  }
  /// Pages go back to the pool. Words where they were not handed out.
  [[nodiscard]] Words give_back(const Ids& pages);
  /// Nodes that were evicted, for so many units; none: not known how many. Adds what went.
  [[nodiscard]] Words evict(const Ids& nodes, std::optional<std::int64_t> units,
                            std::int64_t& gone);
  /// Units that are to be evicted for so many slots; none: not known.
  [[nodiscard]] std::optional<std::int64_t> missing(std::int64_t slots) const;
  [[nodiscard]] Words taken(const Ids& slots, std::int64_t wanted, std::int64_t from,
                            std::int64_t last);
  [[nodiscard]] Words refused(std::int64_t pages);
  [[nodiscard]] Known* find(std::int64_t request);
  /// PX-87. Words, or the slots that are freed.
  [[nodiscard]] Words file(Known& known);
  [[nodiscard]] Words unlock(const Known& known);
  [[nodiscard]] Words move_lock(Known& known, std::int64_t node);
  [[nodiscard]] Words wrong_event(const ShownEvent& event);

  RadixConfig config_;
  QuirkSet<Quirk> quirks_;
  Contents contents_ = {};
  TreeAccounts tree_;
  SlotAccounts slots_;
  std::unordered_map<std::int64_t, Content> rows_ =
      {};  ///< [slot]: prefix that ends with its token
  /// Pages of the pool with two holders, by what was done by hand: rows there are not judged.
  std::unordered_set<std::int64_t> shared_ = {};
  std::map<std::int64_t, Known> requests_ = {};
  std::unordered_map<std::int64_t, std::int64_t> told_ = {};  ///< [key], by events
  bool lost_ = false;
  bool slots_lost_ = false;
  bool rows_lost_ = false;
};

}  // namespace kvo::prefix
