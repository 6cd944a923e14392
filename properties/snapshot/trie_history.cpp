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
namespace {

/// How many tokens two sequences begin with alike.
[[nodiscard]] std::int64_t common_prefix(const Tokens& a, const Tokens& b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

class FiledSequences {
 public:
  void add(Tokens sequence) { sequences_.insert(std::move(sequence)); }
  void clear() { sequences_.clear(); }
  /// Tokens of the longest prefix of `tokens` that one of the sequences begins with: sorted, it is
  /// a neighbour.
  [[nodiscard]] std::int64_t longest(const Tokens& tokens) const {
    const auto next = sequences_.lower_bound(tokens);
    std::int64_t most = 0;
    if (next != sequences_.end()) most = common_prefix(tokens, *next);
    if (next != sequences_.begin()) most = std::max(most, common_prefix(tokens, *std::prev(next)));
    return most;
  }
  [[nodiscard]] bool begins(const Tokens& tokens) const {
    return longest(tokens) == std::ssize(tokens);
  }
  [[nodiscard]] const std::set<Tokens>& sequences() const { return sequences_; }

 private:
  std::set<Tokens> sequences_;
};

/// A tree as it is shown.
struct ShownTree {
  const Tree::Returns& tree;
  std::vector<Tokens> sequences = {};  ///< that lead to each node

  /// Nothing where parents are no tree in pre-order.
  [[nodiscard]] static std::optional<ShownTree> of(const Tree::Returns& tree);
  [[nodiscard]] std::int64_t count() const { return std::ssize(tree.nodes); }
  [[nodiscard]] const TreeNode& node(std::int64_t at) const {
    return tree.nodes[static_cast<std::size_t>(at)];
  }
  [[nodiscard]] const Tokens& sequence(std::int64_t at) const {
    return sequences[static_cast<std::size_t>(at)];
  }
  [[nodiscard]] bool is_active(std::int64_t at) const {
    return std::ranges::find(tree.active, at) != tree.active.end();
  }
};

std::optional<ShownTree> ShownTree::of(const Tree::Returns& tree) {
  ShownTree shown{tree};
  std::vector<std::int64_t> open;  // the path to the node before
  for (std::int64_t at = 0; at < shown.count(); ++at) {
    const TreeNode& node = shown.node(at);
    if (node.parent.has_value() != (at > 0)) return std::nullopt;
    while (at > 0 && !open.empty() && open.back() != *node.parent) open.pop_back();
    if (at > 0 && open.empty()) return std::nullopt;
    Tokens sequence = at > 0 ? shown.sequence(*node.parent) : Tokens();
    sequence.insert(sequence.end(), node.tokens.begin(), node.tokens.end());
    shown.sequences.push_back(std::move(sequence));
    open.push_back(at);
  }
  return shown;
}

// What is known of one trie.
struct TrieKnown {
  std::vector<LayerPlan> layers_ = {};
  bool rooted_ = false;  ///< the trie has a root
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

class TrieHistory final : public History<TrieHistory, TrieOps, JudgedAnswers>, private TrieKnown {
 public:
  TrieHistory(TrieConfig config, QuirkSet<Quirk> quirks)
      : config_(std::move(config)), quirks_(quirks) {}

  [[nodiscard]] std::vector<std::string> explain(std::span<const Op> script,
                                                 const Observation& want,
                                                 const Observation& got) const override;

  // ---- Operations ----

  Words observe(const NewTrie& op, const Observation& seen);
  Words observe(const Begin& op, const Observation& seen);
  Words observe(const Feed& op, const Observation& seen);
  Words observe(const Keep& op, const Observation& seen);
  Words observe(const Output& op, const Observation& seen) {
    sequence_.insert(sequence_.end(), op.tokens.begin(), op.tokens.end());
    return must_succeed(seen);
  }
  Words observe(const CloseSession& op, const Observation& seen);
  Words observe(const SetLimit& op, const Observation& seen) {
    if (op.bytes < limit_) limit_kept_ = false;
    limit_ = op.bytes;
    return must_succeed(seen);
  }
  Words observe(const Enforce& op, const Observation& seen);
  Words observe(const Find& op, const Observation& seen);
  Words observe(const LayerStates& op, const Observation& seen);
  Words observe(const Tree& op, const Observation& seen);
  Words observe(const ShowUsage& op, const Observation& seen);

 private:
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

  // ---- What is wrong with a tree ----

  [[nodiscard]] Words wrong_sequences(const ShownTree& shown) const;
  [[nodiscard]] Words wrong_path(const ShownTree& shown) const;
  [[nodiscard]] Words wrong_times(const ShownTree& shown) const;
  [[nodiscard]] Words wrong_snapshots(const ShownTree& shown) const;
  [[nodiscard]] Words wrong_leaves(const ShownTree& shown) const;
  [[nodiscard]] Words wrong_marks(const ShownTree& shown) const;

  TrieConfig config_;
  QuirkSet<Quirk> quirks_;
};

// A session that holds less than it was to: which tokens went, and whose they were.
std::vector<std::string> TrieHistory::explain(std::span<const Op> script, const Observation& want,
                                              const Observation& got) const {
  const auto* begin = script.back().as<Begin>();
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
Words TrieHistory::observe(const NewTrie& /*op*/, const Observation& seen) {
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
  static_cast<TrieKnown&>(*this) = {.layers_ = std::move(layers)};
  begun_ = true;
  lost_ = odd;
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
Words TrieHistory::observe(const Begin& op, const Observation& seen) {
  if (rooted_ && strayed()) return lose_track();
  if (open_ && !has(Quirk::kBeginForgets) && offset() > 0) {
    if (cannot_file()) return must_fail(*cannot_file(), seen);
    file();
  }
  if (offset() > frontier_.value_or(0)) left_behind_ = true;
  may_have_kept();
  if (seen.error && (null_layer_aborts() || tree_doubtful_)) return lose_track();
  if (seen.error) return judged("a session cannot begin");
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
  return judged(std::move(words));
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
Words TrieHistory::observe(const Feed& op, const Observation& seen) {
  if (offsets(0) != offsets(1)) fed_.insert(fed_.end(), op.tokens.begin(), op.tokens.end());
  if (rows_doubtful_ && seen.error) return lose_track();
  const bool odd = op.tokens.empty() && has(Quirk::kNothingMovesTheRing);
  if (odd) lost_ = true;
  return must_show(OffsetsOnly{offsets(offset())}, seen);
}

// MR-69
Words TrieHistory::observe(const Keep& op, const Observation& seen) {
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
Words TrieHistory::observe(const CloseSession& /*op*/, const Observation& seen) {
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
Words TrieHistory::observe(const Enforce& /*op*/, const Observation& seen) {
  const bool aborted = seen.error && null_layer_aborts();
  may_have_evicted();
  limit_kept_ = !aborted;
  return aborted ? skip() : must_succeed(seen);
}

// ---- Looks ----

// MR-65
Words TrieHistory::observe(const Find& op, const Observation& seen) {
  if (seen.error) return judged("a search fails");
  if (tree_doubtful_) return skip();
  const auto& found = seen.as<Find::Returns>();
  const std::int64_t most = filed_.longest(op.tokens);
  const std::int64_t least = present_.longest(op.tokens);
  if (found.matched < least || found.matched > most)
    return judged(std::to_string(found.matched) + " tokens are found of " + std::to_string(most));
  if (found.path.empty() == rooted_ || (rooted_ && found.path.front() != 0) ||
      !std::ranges::is_sorted(found.path))
    return judged("what is found is no path from the root");
  if (nodes_ && rooted_) {
    const std::int64_t last = found.path.back();
    const bool exists = last < std::ssize(*nodes_);
    if (!exists ||
        common_prefix((*nodes_)[static_cast<std::size_t>(last)], op.tokens) != found.matched)
      return judged("the path does not lead to what is found");
  }
  return judged();
}

Words TrieHistory::observe(const LayerStates& /*op*/, const Observation& seen) {
  if (seen.error) return judged("a look at the layers fails");
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
  return judged(std::move(words));
}

// ---- The tree ----

std::string node_name(std::int64_t at) {
  return "node " + std::to_string(at);
}

// MR-60: edges, ends, and what siblings begin with.
Words wrong_edges(const ShownTree& shown) {
  std::set<std::pair<std::int64_t, std::int32_t>> begins;
  for (std::int64_t at = 0; at < shown.count(); ++at) {
    const TreeNode& node = shown.node(at);
    if (node.end != std::ssize(shown.sequence(at))) return node_name(at) + " ends elsewhere";
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

Words TrieHistory::wrong_sequences(const ShownTree& shown) const {
  FiledSequences all;
  for (std::int64_t at = 0; at < shown.count(); ++at) {
    if (!filed_.begins(shown.sequence(at)))
      return node_name(at) + " is for tokens that were never filed";
    all.add(shown.sequence(at));
  }
  for (const Tokens& filed : present_.sequences())
    if (!all.begins(filed))
      return "a sequence of " + std::to_string(filed.size()) + " tokens is lost";
  return std::nullopt;
}

// MR-61: it leads to tokens that the layers hold.
Words TrieHistory::wrong_path(const ShownTree& shown) const {
  const auto& active = shown.tree.active;
  if (shown.count() == 0) return active.empty() ? std::nullopt : Words("a path without a tree");
  if (active.empty() || active.front() != 0) return "the path does not begin at the root";
  for (std::size_t i = 0; i < active.size(); ++i) {
    if (active[i] < 0 || active[i] >= shown.count()) return "the path leads out of the tree";
    if (i > 0 && shown.node(active[i]).parent != Nullable<std::int64_t>(active[i - 1]))
      return "the path leaps";
  }
  const Tokens& frontier = shown.sequence(active.back());
  if (common_prefix(frontier, fed_) != std::ssize(frontier))
    return "the frontier is for tokens that the layers do not hold";
  if (frontier_ && *frontier_ != std::ssize(frontier))
    return "the frontier ends at " + std::to_string(frontier.size()) + ", what was filed at " +
           std::to_string(*frontier_);
  return std::nullopt;
}

// MR-63: when a node was used, the nodes above were used, too.
Words TrieHistory::wrong_times(const ShownTree& shown) const {
  std::set<std::int64_t> times;
  for (std::int64_t at = 0; at < shown.count(); ++at) {
    times.insert(shown.node(at).last_used);
    if (at > 0 && shown.node(*shown.node(at).parent).last_used < shown.node(at).last_used)
      return node_name(at) + " was used after the one above";
  }
  if (times.empty()) return std::nullopt;
  if (*times.begin() != 0 || *times.rbegin() != std::ssize(times) - 1) return "times are no ranks";
  for (const std::int64_t at : shown.tree.active)
    if (just_closed_ && shown.node(at).last_used != *times.rbegin())
      return node_name(at) + " was used last and is older";
  return std::nullopt;
}

// MR-62, MR-74: rows of the tokens that lead to them, counted, and no more than is allowed.
Words TrieHistory::wrong_snapshots(const ShownTree& shown) const {
  std::int64_t bytes = 0;
  bool evictable = false;
  for (std::int64_t at = 0; at < shown.count(); ++at) {
    const auto& list = shown.node(at).snapshots;
    if (!list.has_value()) continue;
    if (list->size() != layers_.size()) return node_name(at) + " has not one snapshot a layer";
    for (std::size_t i = 0; i < list->size(); ++i) {
      const auto& one = (*list)[i];
      if (!one.has_value()) continue;
      if (auto words = wrong_snapshot(layers_[i], *one, shown.sequence(at)))
        return node_name(at) + ", layer " + std::to_string(i) + ": " + *words;
      bytes += one->size.value_or(0);
      evictable = evictable || (at > 0 && !shown.is_active(at));
    }
  }
  if (bytes != shown.tree.paged_out_bytes)
    return std::to_string(shown.tree.paged_out_bytes) + " bytes are counted of " +
           std::to_string(bytes);
  if (limit_kept_ && bytes > limit_ && evictable)
    return std::to_string(bytes) + " bytes are held where " + std::to_string(limit_) +
           " are allowed";
  return std::nullopt;
}

// How many tokens of the path to a node the rows of one layer cover, from the first without a gap.
std::int64_t covered(const ShownTree& shown, std::int64_t at, std::size_t layer) {
  std::int64_t end = at > 0 ? covered(shown, *shown.node(at).parent, layer) : 0;
  const auto& list = shown.node(at).snapshots;
  if (!list.has_value() || !(*list)[layer].has_value()) return end;
  const Contents& one = *(*list)[layer];
  if (one.from.value_or(0) <= end) end = std::max(end, one.to.value_or(*one.offset));
  return end;
}

// MR-67: who leaves a path pages it out. A leaf is a restore point, and kv has all rows before it.
Words TrieHistory::wrong_leaves(const ShownTree& shown) const {
  std::set<std::int64_t> parents;
  for (const TreeNode& node : shown.tree.nodes) parents.insert(node.parent.value.value_or(-1));
  for (std::int64_t at = 1; at < shown.count(); ++at) {
    if (parents.contains(at) || shown.is_active(at)) continue;
    const auto& list = shown.node(at).snapshots;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (layers_[i].kind == LayerPlan::Kind::kNone) continue;
      if (!list.has_value() || !(*list)[i].has_value())
        return node_name(at) + " was left and has no snapshot of layer " + std::to_string(i);
      if (layers_[i].kind == LayerPlan::Kind::kKv && covered(shown, at, i) < shown.node(at).end)
        return node_name(at) + ": layer " + std::to_string(i) + " lacks rows on the way there";
    }
  }
  return std::nullopt;
}

Words TrieHistory::wrong_marks(const ShownTree& shown) const {
  if (has(Quirk::kUserLeafGrows) || has(Quirk::kUserNodeMerged)) return std::nullopt;
  std::set<Tokens> marked;
  for (std::int64_t at = 0; at < shown.count(); ++at) {
    if (!shown.node(at).user) continue;
    marked.insert(shown.sequence(at));
    if (!marked_.contains(shown.sequence(at))) return node_name(at) + " was never marked";
  }
  if (!evicted_ && marked.size() != marked_.size()) return "a mark is lost";
  return std::nullopt;
}

Words TrieHistory::observe(const Tree& /*op*/, const Observation& seen) {
  if (seen.error) return judged("a look at the tree fails");
  const auto& tree = seen.as<Tree::Returns>();
  auto shown = ShownTree::of(tree);
  Words words = shown ? wrong_edges(*shown) : "nodes are not in pre-order";
  if (!words) words = wrong_sequences(*shown);
  if (!words) words = wrong_path(*shown);
  if (!words) words = wrong_times(*shown);
  if (!words) words = wrong_snapshots(*shown);
  if (!words && !evicted_ && !left_behind_) words = wrong_leaves(*shown);
  if (!words) words = wrong_marks(*shown);
  if (!words && tree.nodes.empty() == rooted_) words = "a tree without a root, or too soon";
  const bool doubtful = tree_doubtful_;
  if (!words) {
    tree_doubtful_ = false;
    filed_.clear();
    present_.clear();
    for (const Tokens& sequence : shown->sequences) {
      filed_.add(sequence);
      present_.add(sequence);
    }
    most_bytes_ = tree.paged_out_bytes;
    nodes_ = std::move(shown->sequences);
  }
  return doubtful ? skip() : judged(std::move(words));
}

// MR-75
Words TrieHistory::observe(const ShowUsage& /*op*/, const Observation& seen) {
  if (seen.error) return judged("a look at what it came to fails");
  const auto before = std::exchange(usage_, seen.as<ShowUsage::Returns>());
  if (usage_.evictions < before.evictions || usage_.page_ins < before.page_ins)
    return judged("what was counted is counted no more");
  if (usage_.evictions > 0 && !evicted_) return judged("something is evicted within the limit");
  if (tree_doubtful_) return skip();
  if (usage_.paged_out_bytes < 0 || usage_.paged_out_bytes > most_bytes_)
    return judged(std::to_string(usage_.paged_out_bytes) + " bytes are kept, " +
                  std::to_string(most_bytes_) + " can be at most");
  return judged();
}

}  // namespace

std::unique_ptr<Oracle> trie_history(const TrieConfig& config, QuirkSet<Quirk> quirks) {
  return std::make_unique<TrieHistory>(config, quirks);
}

}  // namespace kvo::snapshot
