// optimized/prefix/radix_tree.hpp: the tree of `prefix.radix`.
//
// Words    walk    where a lookup leads, found without changing anything; what it will need is
//                  made ready then, and carrying it out cannot fail.
//          edge    from a node to a child, found by the child's first page.
//          shell   what is left of a node that was evicted, where gone nodes can be locked.
// Source   rules PX-60 to PX-79.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "optimized/prefix/content_index.hpp"
#include "optimized/prefix/event_log.hpp"
#include "optimized/prefix/flat_index.hpp"
#include "optimized/prefix/leaf_heap.hpp"
#include "optimized/prefix/namespaces.hpp"
#include "optimized/prefix/run_pool.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::optimized {

/// Edges of all nodes are in one index; leaves that may be evicted are in a heap by the policy, in
/// which a node that is used is moved; runs have their memory from a pool. No walk recurses.
class RadixTree {
 public:
  using Id = FlatIndex::Id;
  static constexpr Id kNone = FlatIndex::kNone;
  static constexpr Id kRoot = 0;

  struct Walk {
    Id node = kRoot;          ///< the last one that is passed whole
    std::int64_t length = 0;  ///< units in common
    Id child = kNone;         ///< below it, of which `common` units are passed
    std::int64_t common = 0;
    prefix::TokensView tokens = {};  ///< of all its units
    std::int64_t units = 0;          ///< whole pages
  };
  /// Memory that a walk and a new node will use.
  struct Room {
    std::optional<SpareRun> part = std::nullopt;
    std::optional<SpareRun> rest = std::nullopt;
    std::optional<SpareRun> leaf = std::nullopt;
  };
  /// What an insert leaves at the nodes that it passes (PX-68, PX-69).
  struct Use {
    std::int64_t priority = 0;
    std::int64_t inserted = 0;
  };

  RadixTree(const prefix::RadixConfig& config, QuirkSet<prefix::Quirk> quirks);
  ~RadixTree();
  RadixTree(const RadixTree&) = delete;
  RadixTree& operator=(const RadixTree&) = delete;

  /// Whole pages of so many tokens, in units (PX-62, PX-78).
  [[nodiscard]] std::int64_t units_of(std::int64_t tokens) const;
  [[nodiscard]] Walk find(prefix::TokensView tokens, Namespaces::Id space) const;

  /// Room for new nodes, and for events of so many units. Throws std::bad_alloc; nothing has
  /// changed then; as the following.
  void reserve(std::size_t nodes, std::int64_t told);
  /// Room for a walk, and for what its end lacks where that becomes a node.
  void prepare(const Walk& walk, Room& room, bool inserts);
  [[nodiscard]] SpareRun spare(std::int64_t units) {
    return SpareRun(runs_, static_cast<std::size_t>(units));
  }
  /// Renews what is passed and splits (PX-64 to PX-69). Returns  the node reached.
  Id pass(const Walk& walk, Room& room, const Use* use) noexcept;
  /// The same, and files what is left below (PX-66). No slots: the tokens.
  Id insert(const Walk& walk, Room& room, const Use& use, Namespaces::Id space,
            const std::int64_t* slots) noexcept;
  /// The slots from the root to a node at such a length, from `from` on.
  void write_slots(Id node, std::int64_t length, std::int64_t from, std::int64_t* to) const;

  // What evicts takes leaves off one by one, and puts them back or drops them all.
  [[nodiscard]] bool nothing_to_evict() const { return leaves_.empty(); }
  [[nodiscard]] Id first_leaf() const { return leaves_.top(); }
  void take_off(Id leaf) noexcept;
  /// Requires  that it was taken off last of those that are not put back.
  void put_back(Id leaf) noexcept;
  /// For each that was taken off, when all are: parents that this evict passed over may go now.
  void list_parent(Id leaf) noexcept;
  void drop(Id leaf) noexcept;

  /// The node of a number that may be locked, or kNone.
  [[nodiscard]] Id find(std::int64_t number) const;
  [[nodiscard]] bool may_unlock(Id node) const;
  /// PX-73. Returns  by how much the evictable units change.
  std::int64_t lock(Id node) noexcept;
  std::int64_t unlock(Id node) noexcept;
  void reset();

  [[nodiscard]] std::int64_t number(Id node) const { return nodes_[node].number; }
  [[nodiscard]] bool gone(Id node) const { return nodes_[node].gone; }
  [[nodiscard]] std::int64_t units(Id node) const { return nodes_[node].units; }
  [[nodiscard]] prefix::IdsView slots(Id node) const {
    return {nodes_[node].run.slots(), nodes_[node].run.units};
  }
  [[nodiscard]] std::int64_t total() const { return total_; }
  [[nodiscard]] std::size_t size() const { return numbers_.size(); }
  void all_slots(prefix::Ids& to) const;
  [[nodiscard]] std::span<const prefix::Event> take_events() { return events_.take(); }
  void fill(prefix::ShowTreeReturns& state) const;
  [[nodiscard]] std::optional<std::string> broken_invariant() const;

  [[nodiscard]] Namespaces& spaces() { return spaces_; }

  // Of LeafHeap.
  [[nodiscard]] bool before(Id a, Id b) const;
  [[nodiscard]] std::uint32_t& place(Id node) { return nodes_[node].place; }

 private:
  static constexpr std::uint32_t kNowhere = LeafHeap<RadixTree>::kNowhere;
  struct Node {
    Id parent = kNone;
    Id first = kNone;  ///< children, in order
    Id last = kNone;
    Id earlier = kNone;              ///< siblings
    Id later = kNone;                ///< of an unused one: the next unused one
    std::uint32_t place = kNowhere;  ///< in the heap
    std::uint32_t tag = 0;           ///< of the edge to it
    Namespaces::Id space = Namespaces::kNone;
    bool gone = false;
    std::int64_t number = -1;  ///< -1: unused
    std::int64_t units = 0;
    std::int64_t lock = 0;
    std::int64_t own_locks = 0;  ///< those of this node itself, not of one below
    std::int64_t hits = 0;
    std::int64_t priority = 0;
    std::int64_t used = 0;
    std::int64_t created = 0;
    ChainHash hash = {};  ///< of all pages up to its end, where events are kept
    Run run = {};
  };

  [[nodiscard]] std::uint32_t tag_of(Id parent, Namespaces::Id space,
                                     const prefix::Token* page) const;
  [[nodiscard]] Id child_of(Id parent, Namespaces::Id space, const prefix::Token* page) const;
  [[nodiscard]] Id make() noexcept;
  Id split(Id node, std::int64_t units, Room& room) noexcept;
  void hang_below(Id parent, Id node) noexcept;
  void unhang(Id node) noexcept;
  void list(Id node) noexcept;
  [[nodiscard]] ChainHash hash_before(Id node) const;
  void tell_stored(Id node) noexcept;
  void tell_removed(Id node) noexcept;
  [[nodiscard]] std::size_t page_tokens() const {
    return static_cast<std::size_t>(config_.page_size + (config_.eagle ? 1 : 0));
  }
  [[nodiscard]] bool keeps_shells() const { return quirks_.has(prefix::Quirk::kGoneNodesLocked); }

  prefix::RadixConfig config_;
  QuirkSet<prefix::Quirk> quirks_;
  RunPool runs_;
  std::vector<Node> nodes_;
  Id unused_ = kNone;
  std::size_t unused_count_ = 0;
  FlatIndex edges_;
  FlatIndex numbers_;  ///< of all nodes and shells
  LeafHeap<RadixTree> leaves_;
  Namespaces spaces_;
  EventLog events_;
  std::int64_t next_number_ = 0;
  std::int64_t clock_ = 0;
  std::int64_t evictable_ = 0;
  std::int64_t protected_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace kvo::optimized
