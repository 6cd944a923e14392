// optimized/snapshot/prefix_tree.hpp: a compressed radix tree of token sequences, without layers.
//
// No function calls itself: a chain of any depth is walked, numbered and destroyed in a loop.
// Source   rules MR-60, MR-65, MR-72, MR-73.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <boost/intrusive/set_hook.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include "reference/snapshot/cache.hpp"

namespace kvo::optimized {

// Tokens of an edge, as a part of storage that edges share.
//
// Cutting an edge in two leaves its tokens where they are. The parts of one run of tokens are the
// edges of nodes one below the other, so the last part can grow, and gives back what it held.

/// A part of a run of tokens.
class TokenSlice {
 public:
  TokenSlice() = default;
  /// A run of its own, of just this length.
  explicit TokenSlice(std::span<const std::int32_t> tokens);

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(size_); }
  /// Requires  its tokens are not forgotten.
  [[nodiscard]] std::span<const std::int32_t> tokens() const {
    return run_ ? std::span(run_->tokens).subspan(begin_, size_) : std::span<const std::int32_t>();
  }

  /// Takes off the first `count` tokens. Returns  them, in the same storage.
  [[nodiscard]] TokenSlice cut_front(std::int64_t count);
  /// Adds tokens; copies its own only where another part of the run follows, or to grow the run,
  /// whose slack is an eighth at most.
  void append(std::span<const std::int32_t> more);
  /// Adds the tokens of another; copies nothing where it lies right behind.
  void append(const TokenSlice& behind);
  /// Becomes empty. The end of the run that nobody uses now is given back.
  void give_up();
  /// Its size is all that is kept.
  void forget() { run_.reset(); }

  /// Bytes of the run, shared evenly among its parts.
  [[nodiscard]] std::size_t share_of_storage() const;

 private:
  struct Run : boost::intrusive_ref_counter<Run, boost::thread_unsafe_counter> {
    std::vector<std::int32_t> tokens;
  };
  [[nodiscard]] bool ends_run() const { return run_ && begin_ + size_ == run_->tokens.size(); }

  boost::intrusive_ptr<Run> run_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

// A node of the prefix trie, and its children.
//
// A node finds a child by its first token: a few stand in a small array, more in a hash map. The
// order of children (MR-60) is a list through the nodes, and a number that says who is first of two
// without a walk along it.
// Source   rule MR-60.

struct PrefixNode;

/// The children of a node. Nodes are not owned.
class PrefixChildren {
 public:
  [[nodiscard]] PrefixNode* first() const { return first_; }
  [[nodiscard]] PrefixNode* last() const { return last_; }
  /// Whether there is just one.
  [[nodiscard]] bool is_one() const { return first_ != nullptr && first_ == last_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// The one whose edge begins with `token`, or null.
  [[nodiscard]] PrefixNode* find(std::int32_t token) const;

  /// Adds `child`, whose edge begins with `token`, behind the others.
  void push_back(PrefixNode& child, std::int32_t token);
  /// Puts `by` in the place of `child`; both edges begin with `token`.
  void replace(PrefixNode& child, PrefixNode& by, std::int32_t token);
  void erase(PrefixNode& child, std::int32_t token);

  /// Bytes, its own included.
  [[nodiscard]] std::size_t storage() const;

 private:
  static constexpr std::size_t kFew = 4;
  using Many = boost::unordered_flat_map<std::int32_t, PrefixNode*>;

  void put(std::int32_t token, PrefixNode& child);

  PrefixNode* first_ = nullptr;
  PrefixNode* last_ = nullptr;
  std::size_t size_ = 0;
  std::array<std::int32_t, kFew> tokens_ = {};
  std::array<PrefixNode*, kFew> few_ = {};
  std::unique_ptr<Many> many_ = nullptr;  ///< all of them, once they were more than a few
};

/// The snapshots of a node, one a layer, and what they count for.
struct KeptSnapshots {
  explicit KeptSnapshots(std::vector<snapshot::SnapshotPtr> snapshots);
  std::vector<snapshot::SnapshotPtr> list;
  std::int64_t bytes = 0;
  bool any = false;  ///< whether one is not null
};

/// A node, as lean as it gets: there may be millions.
struct PrefixNode {
  TokenSlice tokens = {};
  std::int64_t end = 0;
  PrefixNode* parent = nullptr;
  std::unique_ptr<PrefixChildren> children = nullptr;  ///< null: none
  PrefixNode* previous = nullptr;                      ///< among the children of the parent
  PrefixNode* next = nullptr;
  std::uint64_t rank = 0;  ///< grows from child to child
  std::int64_t last_used = 0;
  std::unique_ptr<KeptSnapshots> snapshots = nullptr;  ///< null: no list
  boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>> evictable = {};
  std::int64_t number = 0;  ///< in pre-order, when it was last asked for
  bool user = false;
  bool active = false;  ///< on the active path
  bool lost = false;    ///< out of the tree, but still on the active path (MR-74)

  [[nodiscard]] std::int64_t start() const { return end - tokens.size(); }
  [[nodiscard]] PrefixNode* first_child() const { return children ? children->first() : nullptr; }
  [[nodiscard]] std::int64_t bytes() const { return snapshots ? snapshots->bytes : 0; }
  [[nodiscard]] bool has_snapshot() const { return snapshots && snapshots->any; }
};

/// Whether `a` stands before `b` in pre-order. Both are nodes of one tree.
[[nodiscard]] bool stands_before(const PrefixNode& a, const PrefixNode& b);

/// Where a search ended (MR-65).
struct PrefixWalk {
  std::vector<PrefixNode*> path;  ///< from the node that it began with
  std::int64_t matched = 0;       ///< tokens
  std::int64_t into_last = 0;     ///< those of them on the last edge
};

/// Owns the nodes below its root, and the root.
class PrefixTree {
 public:
  PrefixTree() = default;
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;
  ~PrefixTree();

  /// Null before plant().
  [[nodiscard]] PrefixNode* root() const { return root_; }
  void plant(std::int64_t last_used);

  /// The longest prefix of `tokens` from a node on (MR-65).
  [[nodiscard]] static PrefixWalk walk(PrefixNode& from, std::span<const std::int32_t> tokens);
  /// The same, of which only the number of tokens is wanted.
  [[nodiscard]] static std::int64_t matched(const PrefixNode& from,
                                            std::span<const std::int32_t> tokens);

  /// Adds a last child, with the time of `parent`. Below a lost node it is lost, too.
  PrefixNode& append_child(PrefixNode& parent, std::span<const std::int32_t> tokens);
  /// Makes a node of the first `at` tokens of an edge, without a list (MR-72). Returns  it.
  PrefixNode& split(PrefixNode& node, std::int64_t at);
  /// Gives `node` the tokens, end, mark, children and, if later, the time of its only child
  /// (MR-73), which is then out of the tree: destroyed, or lost if it is active.
  void merge(PrefixNode& node);
  /// Destroys a node without children; not the root.
  void remove(PrefixNode& node);

  /// All nodes in pre-order, which are numbered then. Kept until the structure changes.
  [[nodiscard]] const std::vector<const PrefixNode*>& numbered() const;
  /// Bytes of nodes, tokens and lists of snapshots, not of what snapshots hold.
  [[nodiscard]] std::size_t storage() const;

 private:
  PrefixNode* root_ = nullptr;
  mutable std::vector<const PrefixNode*> numbered_ = {};  ///< empty: to be made
};

/// The next node in pre-order, or null.
[[nodiscard]] PrefixNode* next_in_preorder(const PrefixNode& node);

}  // namespace kvo::optimized
