// The history of a prefix trie.
//
// Known are the sequences that were filed, the tokens fed to the layers, and what the model makes
// of tokens. From that follow
// begin    all layers hold the same beginning of the inputs, no more than is known of them;
//          `remaining` is the rest, a snapshot is asked for where the known ends; layers that can
//          go back keep what the inputs have in common with the session before.
// state    the rows of the tokens fed, whatever came in between.
// find     the longest prefix that was filed and, where nothing can have been evicted, no less.
// tree     nodes are prefixes of what was filed, siblings begin with different tokens, the active
//          path leads to tokens that the layers hold, snapshots hold the rows of their tokens,
//          bytes are counted, times and marks are kept, and so is the limit.
// Skipped  in profile original, from an eviction on what depends on the tree, until a look at it
//          shows nothing wrong (MR-74); after an eviction that a null layer stops (MR-73).
//          In both, what follows where the tokens fed are not those of the session.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "properties/snapshot/history.hpp"
#include "properties/snapshot/model_rows.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/snapshot/trie.hpp"

namespace kvo::snapshot {

/// How many tokens two sequences begin with alike.
[[nodiscard]] inline std::int64_t common_prefix(const Tokens& a, const Tokens& b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

class FiledSequences {
 public:
  void add(Tokens sequence) { sequences_.insert(std::move(sequence)); }
  void clear() { sequences_.clear(); }
  /// Tokens of the longest prefix of `tokens` that one of the sequences begins with: sorted, it is
  /// a neighbour.
  [[nodiscard]] std::int64_t longest(const Tokens& tokens) const {
    const auto behind = sequences_.lower_bound(tokens);
    std::int64_t most = 0;
    if (behind != sequences_.end()) most = common_prefix(tokens, *behind);
    if (behind != sequences_.begin())
      most = std::max(most, common_prefix(tokens, *std::prev(behind)));
    return most;
  }
  [[nodiscard]] bool begins(const Tokens& tokens) const {
    return longest(tokens) == std::ssize(tokens);
  }
  [[nodiscard]] const std::set<Tokens>& sequences() const { return sequences_; }

 private:
  std::set<Tokens> sequences_;
};

// ---- what a trie's tree must be like by what was filed ----

/// What the history of a case says of the tree.
struct TreeHistory {
  const std::vector<LayerPlan>& layers;
  const FiledSequences& filed;    ///< whatever is in the tree is a prefix of one of these
  const FiledSequences& present;  ///< these are in the tree for sure
  const Tokens& live;             ///< what the layers hold
  /// Where the frontier ends; nothing: not known.
  std::optional<std::int64_t> frontier = std::nullopt;
  /// Sequences whose end a user marked; nothing: marks are not followed.
  const std::set<Tokens>* marked = nullptr;
  bool all_marks = false;                            ///< each of them is in the tree
  bool just_closed = false;                          ///< the active path was used last
  std::optional<std::int64_t> limit = std::nullopt;  ///< that evictions have kept
  /// Nothing was evicted, and each session was filed before the next: what was left was kept.
  bool all_kept = false;
};

namespace {

using WrongTree = std::optional<std::string>;

std::string node_name(std::size_t at) {
  return "node " + std::to_string(at);
}

// MR-60: edges, ends, and what siblings begin with.
WrongTree wrong_edges(const Tree::Returns& tree, const std::vector<Tokens>& sequences) {
  std::set<std::pair<std::int64_t, std::int32_t>> begins;
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    const TreeNode& node = tree.nodes[at];
    if (node.end != std::ssize(sequences[at])) return node_name(at) + " ends elsewhere";
    if (at == 0) {
      if (!node.tokens.empty()) return "the root has tokens";
      continue;
    }
    if (node.tokens.empty()) return node_name(at) + " has no tokens";
    if (!begins.emplace(*node.parent, node.tokens.front()).second)
      return node_name(at) + " begins as a sibling does";
  }
  return std::nullopt;
}

WrongTree wrong_sequences(const std::vector<Tokens>& sequences, const TreeHistory& history) {
  FiledSequences shown;
  for (std::size_t at = 0; at < sequences.size(); ++at) {
    if (!history.filed.begins(sequences[at]))
      return node_name(at) + " stands for tokens that nobody filed";
    shown.add(sequences[at]);
  }
  for (const Tokens& filed : history.present.sequences())
    if (!shown.begins(filed))
      return "a sequence of " + std::to_string(filed.size()) + " tokens is lost";
  return std::nullopt;
}

// MR-61: it leads to tokens that the layers hold.
WrongTree wrong_path(const Tree::Returns& tree, const std::vector<Tokens>& sequences,
                     const TreeHistory& history) {
  if (tree.nodes.empty())
    return tree.active.empty() ? std::nullopt : WrongTree("a path without a tree");
  if (tree.active.empty() || tree.active.front() != 0) return "the path does not begin at the root";
  for (std::size_t i = 0; i < tree.active.size(); ++i) {
    const std::int64_t at = tree.active[i];
    if (at < 0 || at >= std::ssize(tree.nodes)) return "the path leads out of the tree";
    if (i > 0 && tree.nodes[static_cast<std::size_t>(at)].parent !=
                     Nullable<std::int64_t>(tree.active[i - 1]))
      return "the path leaps";
  }
  const Tokens& frontier = sequences[static_cast<std::size_t>(tree.active.back())];
  if (common_prefix(frontier, history.live) != std::ssize(frontier))
    return "the frontier stands for tokens that the layers do not hold";
  if (history.frontier && *history.frontier != std::ssize(frontier))
    return "the frontier ends at " + std::to_string(frontier.size()) + ", what was filed at " +
           std::to_string(*history.frontier);
  return std::nullopt;
}

// MR-63: whoever was used, the nodes above were, too.
WrongTree wrong_times(const Tree::Returns& tree, const TreeHistory& history) {
  std::set<std::int64_t> times;
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    const TreeNode& node = tree.nodes[at];
    times.insert(node.last_used);
    if (at > 0 && tree.nodes[static_cast<std::size_t>(*node.parent)].last_used < node.last_used)
      return node_name(at) + " was used after the one above";
  }
  if (times.empty()) return std::nullopt;
  if (*times.begin() != 0 || *times.rbegin() != std::ssize(times) - 1) return "times are no ranks";
  for (const std::int64_t at : tree.active)
    if (history.just_closed &&
        tree.nodes[static_cast<std::size_t>(at)].last_used != *times.rbegin())
      return node_name(static_cast<std::size_t>(at)) + " was used last and is older";
  return std::nullopt;
}

// MR-62, MR-74: rows of the tokens that lead to them, counted, and no more than may be.
WrongTree wrong_snapshots(const Tree::Returns& tree, const std::vector<Tokens>& sequences,
                          const TreeHistory& history) {
  std::int64_t bytes = 0;
  bool evictable = false;
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    const TreeNode& node = tree.nodes[at];
    if (!node.snapshots.has_value()) continue;
    if (node.snapshots->size() != history.layers.size())
      return node_name(at) + " has not one snapshot a layer";
    for (std::size_t i = 0; i < node.snapshots->size(); ++i) {
      const auto& one = (*node.snapshots)[i];
      if (!one.has_value()) continue;
      if (auto words = wrong_snapshot(history.layers[i], *one, sequences[at]))
        return node_name(at) + ", layer " + std::to_string(i) + ": " + *words;
      bytes += one->size.value_or(0);
      evictable =
          evictable || (at > 0 && std::ranges::find(tree.active, static_cast<std::int64_t>(at)) ==
                                      tree.active.end());
    }
  }
  if (bytes != tree.paged_out_bytes)
    return std::to_string(tree.paged_out_bytes) + " bytes are counted of " + std::to_string(bytes);
  if (history.limit && bytes > *history.limit && evictable)
    return std::to_string(bytes) + " bytes are kept where " + std::to_string(*history.limit) +
           " are allowed";
  return std::nullopt;
}

// How many tokens of a path the rows of one layer cover, from the first on without a gap.
std::int64_t covered(const Tree::Returns& tree, const std::vector<std::int64_t>& path,
                     std::size_t layer) {
  std::int64_t end = 0;
  for (const std::int64_t at : path) {
    const auto& list = tree.nodes[static_cast<std::size_t>(at)].snapshots;
    if (!list.has_value() || !(*list)[layer].has_value()) continue;
    const Contents& one = *(*list)[layer];
    if (one.from.value_or(0) <= end) end = std::max(end, one.to.value_or(*one.offset));
  }
  return end;
}

// MR-67: who leaves a path pages it out. A leaf is a restore point, and kv has all rows before it.
WrongTree wrong_leaves(const Tree::Returns& tree, const TreeHistory& history) {
  std::vector<bool> has_children(tree.nodes.size());
  for (const TreeNode& node : tree.nodes)
    if (node.parent.has_value()) has_children[static_cast<std::size_t>(*node.parent)] = true;
  for (std::size_t at = 1; at < tree.nodes.size(); ++at) {
    const bool active =
        std::ranges::find(tree.active, static_cast<std::int64_t>(at)) != tree.active.end();
    if (has_children[at] || active) continue;
    std::vector<std::int64_t> path{static_cast<std::int64_t>(at)};
    while (path.front() > 0)
      path.insert(path.begin(), *tree.nodes[static_cast<std::size_t>(path.front())].parent);
    for (std::size_t i = 0; i < history.layers.size(); ++i) {
      if (history.layers[i].kind == LayerPlan::Kind::kNone) continue;
      if (!tree.nodes[at].snapshots.has_value() || !(*tree.nodes[at].snapshots)[i].has_value())
        return node_name(at) + " was left and has no snapshot of layer " + std::to_string(i);
      if (history.layers[i].kind == LayerPlan::Kind::kKv &&
          covered(tree, path, i) < tree.nodes[at].end)
        return node_name(at) + ": layer " + std::to_string(i) + " lacks rows on the way there";
    }
  }
  return std::nullopt;
}

WrongTree wrong_marks(const Tree::Returns& tree, const std::vector<Tokens>& sequences,
                      const TreeHistory& history) {
  if (history.marked == nullptr) return std::nullopt;
  std::set<Tokens> shown;
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    if (!tree.nodes[at].user) continue;
    shown.insert(sequences[at]);
    if (!history.marked->contains(sequences[at])) return node_name(at) + " was never marked";
  }
  if (history.all_marks && shown.size() != history.marked->size()) return "a mark is lost";
  return std::nullopt;
}

}  // namespace

/// The sequence that leads to each node; nothing where parents are no tree in pre-order.
std::optional<std::vector<Tokens>> sequences_of(const Tree::Returns& tree) {
  std::vector<Tokens> sequences;
  std::vector<std::int64_t> open;  // the path to the node before
  for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
    const TreeNode& node = tree.nodes[at];
    if (node.parent.has_value() != (at > 0)) return std::nullopt;
    while (at > 0 && !open.empty() && open.back() != *node.parent) open.pop_back();
    if (at > 0 && open.empty()) return std::nullopt;
    Tokens sequence = at > 0 ? sequences[static_cast<std::size_t>(*node.parent)] : Tokens();
    sequence.insert(sequence.end(), node.tokens.begin(), node.tokens.end());
    sequences.push_back(std::move(sequence));
    open.push_back(static_cast<std::int64_t>(at));
  }
  return sequences;
}

/// Words for the first thing that is wrong.
/// Requires  sequences are sequences_of(tree).
std::optional<std::string> wrong_tree(const Tree::Returns& tree,
                                      const std::vector<Tokens>& sequences,
                                      const TreeHistory& history) {
  if (auto words = wrong_edges(tree, sequences)) return words;
  if (auto words = wrong_sequences(sequences, history)) return words;
  if (auto words = wrong_path(tree, sequences, history)) return words;
  if (auto words = wrong_times(tree, history)) return words;
  if (auto words = wrong_snapshots(tree, sequences, history)) return words;
  if (history.all_kept)
    if (auto words = wrong_leaves(tree, history)) return words;
  return wrong_marks(tree, sequences, history);
}

// ---- the history ----

namespace {

// What is known of one trie.
struct TrieKnown {
  std::vector<LayerPlan> layers_ = {};
  bool begun_ = false;   ///< there is a trie
  bool rooted_ = false;  ///< with a root
  bool lost_ = false;    ///< nothing is known any more, until there is a new one
  // The session.
  Tokens sequence_ = {};
  Tokens fed_ = {};  ///< what the layers hold
  bool open_ = false;
  std::int64_t asked_ = 0;
  std::optional<std::int64_t> frontier_ = std::nullopt;
  bool just_closed_ = false;
  // The tree.
  FiledSequences filed_ = {};
  FiledSequences present_ = {};  ///< without what may have been evicted
  std::set<Tokens> marked_ = {};
  std::optional<std::vector<Tokens>> nodes_ = std::nullopt;  ///< as shown, while nothing changes
  bool tree_doubtful_ = false;
  bool rows_doubtful_ = false;  ///< of the layers
  // Bytes.
  std::int64_t limit_ = 0;
  std::int64_t most_bytes_ = 0;    ///< that snapshots in the tree can have
  bool limit_kept_ = false;        ///< an eviction ended, and the limit has not been lowered since
  bool evicted_ = false;           ///< perhaps, ever
  bool left_behind_ = false;       ///< tokens that no frontier ended with, when a session began
  ShowUsage::Returns usage_ = {};  ///< as shown last
};

class TrieHistory final : public JudgedAnswers, private TrieKnown {
 public:
  TrieHistory(TrieConfig config, QuirkSet<Quirk> quirks)
      : config_(std::move(config)), quirks_(quirks) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    Words words;
    if (seen.unsupported) return words;
    visit_op(TrieOps(), op, [&](const auto& operation) {
      if constexpr (std::is_same_v<decltype(operation), const NewTrie&>)
        words = saw(operation, seen);
      else if (!begun_)
        words = must_fail(Code::kPrecondition, seen);
      else
        words = lost_ ? skip() : saw(operation, seen);
    });
    return words;
  }
  [[nodiscard]] std::vector<std::string> explain(std::span<const Op> script,
                                                 const Observation& want,
                                                 const Observation& got) const override;

 private:
  // ---- Operations ----

  Words saw(const NewTrie& op, const Observation& seen);
  Words saw(const Begin& op, const Observation& seen);
  Words saw(const Feed& op, const Observation& seen);
  Words saw(const Keep& op, const Observation& seen);
  Words saw(const Output& op, const Observation& seen) {
    sequence_.insert(sequence_.end(), op.tokens.begin(), op.tokens.end());
    return must_succeed(seen);
  }
  Words saw(const CloseSession& op, const Observation& seen);
  Words saw(const SetLimit& op, const Observation& seen) {
    if (op.bytes < limit_) limit_kept_ = false;
    limit_ = op.bytes;
    return must_succeed(seen);
  }
  Words saw(const Enforce& op, const Observation& seen);
  Words saw(const Find& op, const Observation& seen);
  Words saw(const LayerStates& op, const Observation& seen);
  Words saw(const Tree& op, const Observation& seen);
  Words saw(const ShowUsage& op, const Observation& seen);

  // ---- What follows from them ----

  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] std::int64_t offset() const { return std::ssize(fed_); }
  [[nodiscard]] Offsets offsets(std::int64_t each) const;
  Words lose_track() {
    lost_ = true;
    return skip();
  }
  /// Whether the tokens fed are the session's, as far as it has any.
  [[nodiscard]] bool strayed() const {
    return common_prefix(fed_, sequence_) < std::min(std::ssize(fed_), std::ssize(sequence_));
  }
  /// Why the session cannot be filed, if it cannot (MR-71).
  [[nodiscard]] std::optional<Code> cannot_file() const {
    if (!rooted_) return Code::kPrecondition;
    if (offset() <= std::ssize(sequence_)) return std::nullopt;
    return has(Quirk::kShortSequence) ? Code::kPrecondition : Code::kOutOfRange;
  }
  /// The session's tokens, as many as were fed, are in the tree, and the frontier ends with them.
  void file();
  /// Snapshots of all layers may have been kept.
  void may_have_kept() {
    for (const LayerPlan& layer : layers_) most_bytes_ += layer.most_bytes(offset());
  }
  [[nodiscard]] bool may_evict() const { return most_bytes_ > limit_; }
  [[nodiscard]] bool null_layer_aborts() const;
  void may_have_evicted();
  [[nodiscard]] bool rewinds_everywhere() const;
  Words begun_at(const Begin& op, const Observation& seen, std::int64_t at_least);
  [[nodiscard]] Words wrong_begin(const Begin& op, const Begin::Returns& begun,
                                  std::int64_t at_least) const;

  TrieConfig config_;
  QuirkSet<Quirk> quirks_;
};

// A session that holds less than it was to: which tokens went, and whose they were.
std::vector<std::string> TrieHistory::explain(std::span<const Op> script, const Observation& want,
                                              const Observation& got) const {
  const Begin* begin = script.back().as<Begin>();
  if (begin == nullptr || want.error || got.error) return {};
  const auto held = [&](const Observation& seen) {
    return std::ssize(begin->inputs) - std::ssize(seen.as<Begin::Returns>().remaining);
  };
  const std::int64_t wanted = held(want);
  const std::int64_t shown = held(got);
  if (shown >= wanted) return {};
  std::string line = "the node of input tokens " + std::to_string(shown) + " to " +
                     std::to_string(wanted - 1) + " is no longer held";
  if (common_prefix(begin->inputs, fed_) >= wanted)
    line += ", and is on the path of the last session: eviction must leave it";
  return {line + " (limit " + std::to_string(limit_) + " bytes)"};
}

Offsets TrieHistory::offsets(std::int64_t each) const {
  Offsets all;
  for (const LayerPlan& layer : layers_)
    all.push_back(layer.kind == LayerPlan::Kind::kNone ? Nullable<std::int64_t>() : each);
  return all;
}

// MR-61
Words TrieHistory::saw(const NewTrie& /*op*/, const Observation& seen) {
  constexpr std::size_t kMostLayers = 1024;
  if (config_.layers.size() > kMostLayers) return must_fail(Code::kPrecondition, seen);
  const StorageFormat storage = config_.rows.format();
  if (!kvo::check(storage)) return must_fail(Code::kOutOfRange, seen);
  std::vector<LayerPlan> layers;
  bool odd = false;
  for (const std::string& word : config_.layers) {
    auto layer = LayerPlan::of(word);
    if (!layer) return must_fail(Code::kNotSupported, seen);
    const bool bad = layer->kind == LayerPlan::Kind::kRing && layer->window < 1;
    if (bad && !has(Quirk::kAnyWindow)) return must_fail(Code::kOutOfRange, seen);
    odd = odd || bad;
    layer->may_miss = has(Quirk::kChunkDropsOlder) || has(Quirk::kShortRing);
    layer->storage = storage;
    layers.push_back(*layer);
  }
  static_cast<TrieKnown&>(*this) = {.layers_ = std::move(layers), .begun_ = true, .lost_ = odd};
  limit_ = config_.limit_bytes;
  return must_succeed(seen);
}

void TrieHistory::file() {
  const Tokens filed(sequence_.begin(), sequence_.begin() + offset());
  filed_.add(filed);
  present_.add(filed);
  frontier_ = offset();
  nodes_.reset();
}

bool TrieHistory::null_layer_aborts() const {
  return has(Quirk::kNullLayerAborts) && may_evict() &&
         std::ranges::find(layers_, LayerPlan::Kind::kNone, &LayerPlan::kind) != layers_.end();
}

// What is on the active path stays (MR-74).
void TrieHistory::may_have_evicted() {
  nodes_.reset();
  if (!may_evict()) return;
  evicted_ = true;
  present_.clear();
  if (frontier_) present_.add(Tokens(fed_.begin(), fed_.begin() + *frontier_));
  if (has(Quirk::kMergesActive)) tree_doubtful_ = true;
}

bool TrieHistory::rewinds_everywhere() const {
  return std::ranges::all_of(layers_, [&](const LayerPlan& layer) {
    if (layer.kind == LayerPlan::Kind::kRing) return offset() <= layer.window;
    return layer.kind != LayerPlan::Kind::kState;
  });
}

// ---- Sessions ----

// MR-66
Words TrieHistory::saw(const Begin& op, const Observation& seen) {
  if (rooted_ && strayed()) return lose_track();
  if (open_ && !has(Quirk::kBeginForgets) && offset() > 0) {
    if (cannot_file()) return must_fail(*cannot_file(), seen);
    file();
  }
  if (offset() > frontier_.value_or(0)) left_behind_ = true;
  may_have_kept();
  if (seen.error && (null_layer_aborts() || tree_doubtful_)) return lose_track();
  if (seen.error) return wrong("a session cannot begin");
  // What it has in common with the session before, on the active path.
  std::int64_t at_least = 0;
  if (frontier_ && rewinds_everywhere())
    at_least = common_prefix(op.inputs, Tokens(fed_.begin(), fed_.begin() + *frontier_));
  return begun_at(op, seen, at_least);
}

Words TrieHistory::begun_at(const Begin& op, const Observation& seen, std::int64_t at_least) {
  const auto& begun = seen.as<Begin::Returns>();
  Words words = wrong_begin(op, begun, at_least);
  if (rows_doubtful_) tree_doubtful_ = true;  // they may have been paged out
  if (tree_doubtful_) rows_doubtful_ = true;  // and paged in again
  const auto held = std::ssize(op.inputs) - std::ssize(begun.remaining);
  rooted_ = open_ = limit_kept_ = true;
  just_closed_ = false;
  frontier_.reset();
  sequence_ = op.inputs;
  if (begun.offsets != offsets(held)) lost_ = true;
  fed_.assign(op.inputs.begin(), op.inputs.begin() + std::max<std::int64_t>(held, 0));
  if (layers_.empty() || offsets(0) == offsets(1)) fed_.clear();
  asked_ = begun.snapshot_offset;
  const bool doubtful = rows_doubtful_;
  if (fed_.empty()) rows_doubtful_ = false;
  may_have_evicted();
  if (doubtful) return skip();
  judged();
  return words;
}

// MR-66, MR-67: the inputs as far as they are known, all of them but the last.
Words TrieHistory::wrong_begin(const Begin& op, const Begin::Returns& begun,
                               std::int64_t at_least) const {
  const auto count = std::ssize(op.inputs);
  const auto rest = std::ssize(begun.remaining);
  const std::int64_t held = count - rest;
  if (rest > count || !std::equal(begun.remaining.begin(), begun.remaining.end(),
                                  op.inputs.begin() + std::max<std::int64_t>(held, 0)))
    return "what remains is not the end of the inputs";
  if (begun.offsets != offsets(held)) return "layers do not hold what does not remain";
  const std::int64_t most = std::max<std::int64_t>(count - 1, 0);
  const std::int64_t known = std::min(filed_.longest(op.inputs), most);
  const std::int64_t present = std::min(present_.longest(op.inputs), most);
  if (held > known) return std::to_string(held) + " tokens are held of " + std::to_string(known);
  if (held < std::min(at_least, most))
    return std::to_string(held) + " tokens are held, the session before had " +
           std::to_string(at_least);
  const std::int64_t asked = begun.snapshot_offset;
  if (asked == 0 ? present > held : asked <= held || asked > known || asked < present)
    return "a snapshot is asked for at " + std::to_string(asked) + ", known are " +
           std::to_string(known);
  return std::nullopt;
}

// MR-68
Words TrieHistory::saw(const Feed& op, const Observation& seen) {
  if (offsets(0) != offsets(1)) fed_.insert(fed_.end(), op.tokens.begin(), op.tokens.end());
  if (rows_doubtful_ && seen.error) return lose_track();
  const bool odd = op.tokens.empty() && has(Quirk::kNothingMovesTheRing);
  if (odd) lost_ = true;
  return must_show(OffsetsOnly{offsets(offset())}, seen);
}

// MR-69
Words TrieHistory::saw(const Keep& op, const Observation& seen) {
  if (offset() == 0) return must_show(Keep::Returns{asked_}, seen);
  if (rooted_ && strayed()) return lose_track();
  if (tree_doubtful_ && (seen.error || cannot_file())) return lose_track();
  if (cannot_file()) return must_fail(*cannot_file(), seen);
  if (asked_ > 0 && offset() >= asked_) asked_ = 0;
  file();
  if (op.user) marked_.emplace(fed_);
  may_have_kept();
  just_closed_ = false;
  const bool doubtful = tree_doubtful_;
  if (rows_doubtful_) tree_doubtful_ = true;
  if (seen.error && null_layer_aborts()) return lose_track();
  may_have_evicted();
  if (!doubtful) return must_show(Keep::Returns{asked_}, seen);
  asked_ = seen.as<Keep::Returns>().snapshot_offset;
  return skip();
}

// MR-71
Words TrieHistory::saw(const CloseSession& /*op*/, const Observation& seen) {
  if (offset() > 0) {
    if (rooted_ && strayed()) return lose_track();
    if (tree_doubtful_ && (seen.error || cannot_file())) return lose_track();
    if (cannot_file()) return must_fail(*cannot_file(), seen);
    file();
    open_ = false;
    just_closed_ = true;
  }
  return must_show(OffsetsOnly{offsets(offset())}, seen);
}

// ---- Bytes ----

// MR-74
Words TrieHistory::saw(const Enforce& /*op*/, const Observation& seen) {
  const bool aborted = seen.error && null_layer_aborts();
  may_have_evicted();
  limit_kept_ = !aborted;
  return aborted ? skip() : must_succeed(seen);
}

// ---- Looks ----

// MR-65
Words TrieHistory::saw(const Find& op, const Observation& seen) {
  if (seen.error) return wrong("a search fails");
  if (tree_doubtful_) return skip();
  const auto& found = seen.as<Find::Returns>();
  const std::int64_t most = filed_.longest(op.tokens);
  const std::int64_t least = present_.longest(op.tokens);
  if (found.matched < least || found.matched > most)
    return wrong(std::to_string(found.matched) + " tokens are found of " + std::to_string(most));
  if (found.path.empty() == rooted_ || (rooted_ && found.path.front() != 0) ||
      !std::ranges::is_sorted(found.path))
    return wrong("what is found is no path from the root");
  if (nodes_ && rooted_) {
    const std::int64_t last = found.path.back();
    const bool exists = last < std::ssize(*nodes_);
    if (!exists ||
        common_prefix((*nodes_)[static_cast<std::size_t>(last)], op.tokens) != found.matched)
      return wrong("the path does not lead to what is found");
  }
  judged();
  return std::nullopt;
}

Words TrieHistory::saw(const LayerStates& /*op*/, const Observation& seen) {
  if (seen.error) return wrong("a look at the layers fails");
  const auto& shown = seen.as<LayerStates::Returns>().layers;
  Words words;
  if (shown.size() != layers_.size()) words = "there is not one state a layer";
  for (std::size_t i = 0; i < layers_.size() && !words; ++i) {
    if (shown[i].has_value() == (layers_[i].kind == LayerPlan::Kind::kNone))
      words = "a state where no layer is, or none where one is";
    else if (shown[i].has_value())
      words = wrong_state(layers_[i], *shown[i], fed_);
    if (words) *words = "layer " + std::to_string(i) + ": " + *words;
  }
  if (rows_doubtful_) {
    rows_doubtful_ = words.has_value();
    return skip();
  }
  judged();
  return words;
}

Words TrieHistory::saw(const Tree& /*op*/, const Observation& seen) {
  if (seen.error) return wrong("a look at the tree fails");
  const auto& tree = seen.as<Tree::Returns>();
  const bool marks = !has(Quirk::kUserLeafGrows) && !has(Quirk::kUserNodeMerged);
  auto sequences = sequences_of(tree);
  Words words = "nodes are not in pre-order";
  if (sequences)
    words = wrong_tree(tree, *sequences,
                       {.layers = layers_,
                        .filed = filed_,
                        .present = present_,
                        .live = fed_,
                        .frontier = frontier_,
                        .marked = marks ? &marked_ : nullptr,
                        .all_marks = !evicted_,
                        .just_closed = just_closed_,
                        .limit = limit_kept_ ? std::optional(limit_) : std::nullopt,
                        .all_kept = !evicted_ && !left_behind_});
  if (!words && tree.nodes.empty() == rooted_) words = "a tree without a root, or too soon";
  const bool doubtful = tree_doubtful_;
  if (!words) {
    tree_doubtful_ = false;
    filed_.clear();
    present_.clear();
    for (const Tokens& sequence : *sequences) {
      filed_.add(sequence);
      present_.add(sequence);
    }
    most_bytes_ = tree.paged_out_bytes;
    nodes_ = std::move(sequences);
  }
  if (doubtful) return skip();
  judged();
  return words;
}

// MR-75
Words TrieHistory::saw(const ShowUsage& /*op*/, const Observation& seen) {
  if (seen.error) return wrong("a look at what it came to fails");
  const auto before = std::exchange(usage_, seen.as<ShowUsage::Returns>());
  if (usage_.evictions < before.evictions || usage_.page_ins < before.page_ins)
    return wrong("what was counted is counted no more");
  if (usage_.evictions > 0 && !evicted_) return wrong("something is evicted within the limit");
  if (tree_doubtful_) return skip();
  if (usage_.paged_out_bytes < 0 || usage_.paged_out_bytes > most_bytes_)
    return wrong(std::to_string(usage_.paged_out_bytes) + " bytes are kept, " +
                 std::to_string(most_bytes_) + " can be at most");
  judged();
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Oracle> trie_history(const TrieConfig& config, QuirkSet<Quirk> quirks) {
  return std::make_unique<TrieHistory>(config, quirks);
}

}  // namespace kvo::snapshot
