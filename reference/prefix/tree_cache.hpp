// reference/prefix/tree_cache.hpp: the tree of the reference (PX-60 to PX-79).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "reference/prefix/journal.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::prefix {

/// Nodes by number, evicted ones included. What calls change is taken back by roll_back(),
/// and for good after commit(). Requires  no use of a tree that is disabled.
class RadixTree {
 public:
  RadixTree(const RadixConfig& config, QuirkSet<Quirk> quirks);

  struct Reached {
    std::int64_t node = 0;
    std::int64_t length = 0;  ///< units from the root
  };

  /// What an insert files, and what it counts on its way. The lists are the caller's.
  struct Filing {
    TokensView tokens;
    std::optional<IdsView> slots;  ///< one a unit; none: the tokens
    Namespace space;
    std::int64_t priority = 0;
    std::int64_t inserted = 0;
  };

  [[nodiscard]] std::int64_t root() const { return totals_.root; }
  /// Whole pages of what a number of tokens makes, in units (PX-62, PX-78).
  [[nodiscard]] std::int64_t units_of(std::int64_t tokens) const;
  /// PX-64. Requires  units of the tokens above 0.
  [[nodiscard]] Reached match(TokensView tokens, const Namespace& space);
  /// The slots from the root to a node.
  [[nodiscard]] Ids slots_to(std::int64_t node) const;
  /// PX-66. Requires  a slot for each unit.
  Reached insert(const Filing& op);

  /// The leaf that goes first, at the front of a heap, which it leaves; none: there is none.
  [[nodiscard]] std::optional<std::int64_t> pop_first(Ids& heap) const;
  /// The leaves that may be evicted, as a heap (PX-70).
  [[nodiscard]] Ids leaves() const;
  /// Takes a leaf off the tree; its parent may join the heap (PX-72). Returns  its slots.
  /// Errors  kPrecondition: it is none of the tree; roll back then.
  [[nodiscard]] Result<Ids> remove(std::int64_t leaf, Ids& heap);

  /// Errors  kPrecondition: it is from before the reset, or was evicted and cannot be locked
  /// (PX-79).
  [[nodiscard]] Status known(std::int64_t node) const;
  /// PX-73. Errors  as of RadixCache; roll back then.
  [[nodiscard]] Result<std::int64_t> lock(std::int64_t node);
  [[nodiscard]] Result<std::int64_t> unlock(std::int64_t node);
  /// PX-75.
  void reset();
  /// PX-77; empty for an empty tree.
  [[nodiscard]] Ids all_slots() const;
  [[nodiscard]] std::span<const Event> take_events();
  /// All but what the allocator knows.
  [[nodiscard]] ShowTreeReturns state() const;
  [[nodiscard]] std::optional<std::string> broken_invariant() const;

  // What scripts look at. Nodes since the last reset have numbers from root() + 1 to newest().
  [[nodiscard]] std::int64_t newest() const { return runs_.size() - 1; }
  [[nodiscard]] bool has(std::int64_t node) const { return !marks_[node].gone; }
  [[nodiscard]] std::int64_t own_locks(std::int64_t node) const { return marks_[node].own_locks; }
  [[nodiscard]] std::int64_t units() const { return totals_.evictable + totals_.protected_; }

  void commit() noexcept;
  void roll_back() noexcept;

 private:
  /// What a node holds, and where it hangs.
  struct Run {
    std::int64_t parent = -1;
    std::int64_t units = 0;
    Tokens tokens;  ///< with pairs one more than units
    Ids slots;
    std::vector<Key> keys;  ///< of its pages, where events are kept
    std::vector<std::int64_t> children;
    std::optional<std::string> extra;
    std::string salt;
  };
  /// What changes of a node as it is used.
  struct Mark {
    std::int64_t lock = 0;
    std::int64_t own_locks = 0;  ///< those of this node itself, not of one below
    std::int64_t hits = 0;
    std::int64_t priority = 0;
    std::int64_t used = 0;
    std::int64_t created = 0;
    bool gone = false;
    bool listed =
        false;  ///< among the leaves that may go; one that has gone is when it is unlocked
  };
  struct Totals {
    std::int64_t root = 0;
    std::int64_t clock = 0;  ///< the next time to be read (PX-61)
    std::int64_t evictable = 0;
    std::int64_t protected_ = 0;
  };
  /// By what a child is found: its parent, its namespace and its first page (PX-62, PX-63).
  using Place = std::tuple<std::int64_t, std::optional<std::string>, std::string, Tokens>;
  /// What the key of a page stands for: the page before it, its tokens, and the namespace.
  using Content = std::tuple<std::int64_t, Tokens, std::string, std::optional<std::string>>;

  [[nodiscard]] std::optional<std::int64_t> child_of(std::int64_t parent, const Namespace& space,
                                                     TokensView page) const;
  void set_child(std::int64_t parent, const Namespace& space, TokensView page,
                 std::optional<std::int64_t> child);
  [[nodiscard]] TokensView first_page(TokensView tokens) const;
  /// PX-64, PX-67; of an insertion, what it counts on its way.
  [[nodiscard]] Reached walk(TokensView tokens, const Namespace& space, const Filing* insertion);
  [[nodiscard]] std::int64_t common_units(const Run& run, TokensView rest) const;
  std::int64_t add_node(Run run, Mark mark);
  std::int64_t split(std::int64_t node, std::int64_t units);
  std::int64_t add_leaf(const Reached& at, const Filing& op);
  void count_hit(std::int64_t node, std::int64_t end, const Filing& op);
  [[nodiscard]] std::vector<Key> page_keys(const Run& run);
  void tell_stored(const Run& run);
  void tell_removed(const Run& run);
  /// Lists a node that may have become a leaf that can be evicted, or ceased to be one.
  void list(std::int64_t node);
  [[nodiscard]] std::tuple<std::int64_t, std::int64_t, std::int64_t> standing(
      std::int64_t node) const;
  [[nodiscard]] bool goes_later(std::int64_t a, std::int64_t b) const;

  RadixConfig config_;
  QuirkSet<Quirk> quirks_;
  Journaled<Run> runs_;    ///< [node]
  Journaled<Mark> marks_;  ///< [node]
  Journaled<std::optional<std::int64_t>> children_;
  std::map<Place, std::int64_t> places_;  ///< rows of children_, of all places that ever were
  std::map<Content, std::int64_t> contents_;
  Journaled<Event> events_;
  std::vector<Event> taken_;  ///< by the last take_events
  Totals totals_;
  Totals totals_before_;
};

}  // namespace kvo::prefix
