// optimized/snapshot/prefix_node.hpp: a node of the prefix trie, and its children.
//
// A node finds a child by its first token: a few stand in a small array, more in a hash map. The
// order of children (MR-60) is a list through the nodes, and a number that says who is first of two
// without a walk along it.
// Source   rule MR-60.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <boost/intrusive/set_hook.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include "optimized/snapshot/token_slice.hpp"
#include "reference/snapshot/cache.hpp"

namespace kvo::optimized {

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

}  // namespace kvo::optimized
