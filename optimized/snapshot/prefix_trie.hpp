// optimized/snapshot/prefix_trie.hpp: the prefix trie for many long prefixes.
//
// Matching costs what matches: the child is looked up, and tokens are compared in blocks. The node
// to evict stands first in an ordered index of those that may go. Numbers in pre-order are made
// when they are asked for.
// Source   rules MR-60 to MR-74.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <boost/intrusive/set.hpp>

#include "optimized/snapshot/prefix_tree.hpp"
#include "reference/snapshot/trie.hpp"

namespace kvo::optimized {

/// Who is evicted first (MR-74).
struct EvictedBefore {
  [[nodiscard]] bool operator()(const PrefixNode& a, const PrefixNode& b) const;
};

class RadixPrefixTrie final : public snapshot::PrefixTrie {
 public:
  RadixPrefixTrie(snapshot::Layers layers, std::int64_t limit, QuirkSet<snapshot::Quirk> quirks);
  RadixPrefixTrie(const RadixPrefixTrie&) = delete;
  RadixPrefixTrie& operator=(const RadixPrefixTrie&) = delete;
  ~RadixPrefixTrie() override;

  [[nodiscard]] std::span<const std::unique_ptr<snapshot::Cache>> layers() const override {
    return layers_;
  }
  [[nodiscard]] Result<snapshot::Begin::Returns> begin(const snapshot::Tokens& inputs) override;
  void output(const snapshot::Tokens& tokens) override;
  [[nodiscard]] Result<std::int64_t> snapshot(bool user) override;
  [[nodiscard]] Status close() override;
  void set_limit(std::int64_t bytes) override { limit_ = bytes; }
  [[nodiscard]] Status enforce() override { return evict(); }
  [[nodiscard]] snapshot::Find::Returns find(const snapshot::Tokens& tokens) const override;
  [[nodiscard]] snapshot::TreeView tree() const override;
  [[nodiscard]] snapshot::ShowUsage::Returns usage() const override {
    return {paged_out_, evictions_, page_ins_};
  }

  /// Tokens of the longest known prefix: what find() matches, without numbers of nodes.
  [[nodiscard]] std::int64_t matched(std::span<const std::int32_t> tokens) const;
  /// Bytes of nodes, tokens and lists of snapshots, not of what snapshots hold.
  [[nodiscard]] std::size_t storage() const { return tree_.storage(); }

 private:
  using Path = std::vector<PrefixNode*>;
  using List = std::vector<snapshot::SnapshotPtr>;
  using Evictable = boost::intrusive::set<
      PrefixNode,
      boost::intrusive::member_hook<PrefixNode, decltype(PrefixNode::evictable),
                                    &PrefixNode::evictable>,
      boost::intrusive::compare<EvictedBefore>, boost::intrusive::constant_time_size<false>>;

  [[nodiscard]] std::int64_t offset() const;
  [[nodiscard]] PrefixNode& frontier() const { return *active_.back(); }
  [[nodiscard]] bool complete(const PrefixNode& node) const;
  [[nodiscard]] List snapshots_from(std::int64_t start) const;
  [[nodiscard]] Status can_file(std::int64_t end) const;

  void enter(PrefixNode& node);
  void leave(PrefixNode& node);
  void out_of_index(PrefixNode& node);
  void into_index(PrefixNode& node);
  void set_list(PrefixNode& node, std::unique_ptr<KeptSnapshots> list);
  void close_list(PrefixNode& node);

  Status switch_to(const PrefixWalk& found);
  void page_in(const Path& path, std::int64_t matched);
  void change_path(const Path& path, std::size_t shared);
  void advance_to(std::int64_t end);
  PrefixNode& split(PrefixNode& node, std::int64_t at);
  [[nodiscard]] Status can_merge(const PrefixNode& node, const PrefixNode& child) const;
  Status merge(PrefixNode& node);
  void merge_lists(PrefixNode& node, PrefixNode& child);
  Status evict();
  Status evict(PrefixNode& node);
  Status remove(PrefixNode& node);

  snapshot::Layers layers_;
  std::int64_t limit_;
  QuirkSet<snapshot::Quirk> quirks_;
  bool keeps_all_inputs_;
  PrefixTree tree_ = {};
  Evictable evictable_ = {};  ///< have a snapshot; not the root, not active
  Path active_ = {};          ///< MR-61
  std::int64_t paged_out_ = 0;
  std::int64_t evictions_ = 0;  ///< MR-75
  std::int64_t page_ins_ = 0;   ///< MR-75
  std::int64_t clock_ = 0;
  std::int64_t first_ = 0;          ///< where in the session `sequence_` begins
  snapshot::Tokens sequence_ = {};  ///< inputs and outputs behind the first frontier
  std::int64_t snapshot_offset_ = 0;
  bool open_ = false;
};

/// An empty trie over layers that nobody has written to.
[[nodiscard]] std::unique_ptr<snapshot::PrefixTrie> make_prefix_trie(
    snapshot::Layers layers, std::int64_t limit, QuirkSet<snapshot::Quirk> quirks);

}  // namespace kvo::optimized
