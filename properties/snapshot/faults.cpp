#include "properties/snapshot/faults.hpp"

namespace kvo::snapshot {
namespace {

using seeding::Fault;

constexpr std::string_view kKv = "reference/snapshot/kv_cache.cpp";
constexpr std::string_view kRing = "reference/snapshot/rotating_cache.cpp";
constexpr std::string_view kState = "reference/snapshot/recurrent_cache.cpp";
constexpr std::string_view kTrie = "reference/snapshot/trie.cpp";

std::vector<Fault> row_faults() {
  return {
      {"snapshot.kv",
       "restores_to_the_end",
       "a restore to the middle of a snapshot goes to its end",
       "B113, F13: a node of Ollama's trie was extended under its snapshots, and layers were "
       "restored to different offsets",
       {{kKv, "std::min(end, target)", "std::max(end, target)"}}},
      {"snapshot.kv",
       "snapshot_ignores_from",
       "a snapshot begins with the first token whatever was asked for",
       "B114, F13: a snapshot of Ollama's kept the whole buffer where a part was asked for",
       {{kKv, "std::max<std::int64_t>(from, 0)", "std::int64_t{0} * from"}}},
      {"snapshot.kv",
       "split_shares_a_token",
       "the second half of a split begins one token early",
       "B055, F06: the key at the boundary of a prefix was used by both sides in Ollama's trie",
       {{kKv, "sliced(whole.first, i, end)", "sliced(whole.first, i - 1, end)"}}},
      {"snapshot.kv",
       "merge_forgets_the_parent",
       "merged snapshots begin where the second one does",
       "B113, F13: a node of Ollama's trie was extended under its snapshots",
       {{kKv, "held(*before.from, *behind.to, {*k, *v})",
         "held(*behind.from, *behind.to, {*k, *v})"}}},
      {"snapshot.kv",
       "rewind_refused_at_end",
       "going to where the cache is already is refused",
       "B037, F04: onnxruntime-genai refused rewinds that the full window still allowed",
       {{kKv, "target < 0 || target > offset_", "target < 0 || target >= offset_"}}},
  };
}

std::vector<Fault> ring_faults() {
  return {
      {"snapshot.rotating",
       "writes_over_the_newest",
       "a full ring begins again at its last slot, not at its first",
       "B010, F02: Ollama's rotating cache dropped the rows behind its index when it was rebuilt",
       {{kRing, "if (ring.idx >= window_) ring.idx = 0;",
         "if (ring.idx >= window_) ring.idx = std::max<std::int64_t>(window_ - 1, 0);"}}},
      {"snapshot.rotating",
       "index_not_moved",
       "after the ring was put in order the old write position stays",
       "B011, F02: mlx-lm put its ring in order and kept the old index",
       {{kRing, "ring.offset += tokens_of(k);\n  ring.idx = ring.slots();",
         "ring.offset += tokens_of(k); ring.idx = ring.offset <= window_ ? ring.slots() : "
         "ring.idx;"}}},
      {"snapshot.rotating",
       "trimmed_after_wrap",
       "a ring that has wrapped can be rewound",
       "B013, F02: mlx-lm trimmed a ring that had wrapped, by its index",
       {{kRing, "if (offset_ > window_) return false;",
         "if (offset_ > 2 * window_) return false;"}}},
      {"snapshot.rotating",
       "window_one_short",
       "a chunk sees one token less of those before it",
       "B015, F02: mlx-lm trimmed by what was allocated and dropped tokens that were valid",
       {{kRing, "ring.idx - window_ + 1", "ring.idx - window_ + 2"}}},
      {"snapshot.rotating",
       "snapshot_without_index",
       "a restored ring begins to write at its first slot",
       "B117, F13: a restored cache of llama.cpp looked for room from its first cell on",
       {{kRing, "idx_ = *content.idx;", "idx_ = 0;"}}},
      {"snapshot.rotating",
       "restores_by_length",
       "a wrapped ring is restored to an earlier target by cutting it",
       "B014, F02: mlx-vlm cut a ring by a logical length",
       {{kRing, "target < end && end > window_", "target < end && end > window_ + 1"}}},
  };
}

std::vector<Fault> state_faults() {
  return {
      {"snapshot.recurrent",
       "offset_not_restored",
       "a restored state keeps the offset that the cache had",
       "B119, F13: mlx-lm saved its rows and forgot the fields beside them",
       {{kState, "replace(delta_, shared(own.delta()));\n  offset_ = target;",
         "replace(delta_, shared(own.delta()));"}}},
      {"snapshot.recurrent",
       "one_side_restored",
       "a restore puts the convolution state back, but not the delta state",
       "B119, F13: mlx-lm saved its rows and forgot the fields beside them",
       {{kState, "replace(delta_, shared(own.delta()));", "(void)own.delta();"}}},
      {"snapshot.recurrent",
       "restored_anywhere",
       "a state is restored to any offset",
       "B113, F13: layers of Ollama's trie were restored to different offsets",
       {{kState, "if (target != *own.content().offset) return false;", "(void)0;"}}},
  };
}

std::vector<Fault> trie_faults() {
  return {
      {"snapshot.trie",
       "matches_all_inputs",
       "all inputs count as known, and nothing is left to evaluate",
       "B055, F06: a prefix of Ollama's trie was used up to the token that nobody could verify",
       {{kTrie, "found.matched == std::ssize(inputs) && found.matched > 0",
         "found.matched == std::ssize(inputs) + 1"}}},
      {"snapshot.trie",
       "stops_after_one_edge",
       "a search ends with the first edge",
       "B058, F06: vLLM kept the keys of a block whose tokens had been cut",
       {{kTrie, "if (same < std::ssize(found.path.back()->tokens)) break;", "break;"}}},
      {"snapshot.trie",
       "split_keeps_snapshots_below",
       "splitting an edge gives the upper part no snapshots",
       "B113, F13: a node of Ollama's trie lost its restore point when its edge changed",
       {{kTrie, "upper->snapshots = std::move(before);",
         "if (before.empty()) upper->snapshots = std::move(before);"}}},
      {"snapshot.trie",
       "evicts_active",
       "what a session stands on is evicted with the rest",
       "B061, F07: vLLM handed out a hit that was evicted before it was taken",
       {{kTrie, "node != root_ && node->has_snapshot() && !is_active(*node)",
         "node != root_ && node->has_snapshot()"}}},
      {"snapshot.trie",
       "leaf_not_paged_out",
       "the path that is left keeps no snapshot where the new one ends inside its edge",
       "B062, F07: vLLM kept the result of a look-up over a change of what was looked up",
       {{kTrie, "(shared < std::ssize(active_) || m < leaf.end)",
         "(shared < std::ssize(active_))"}}},
  };
}

}  // namespace

const std::vector<Fault>& faults() {
  static const std::vector<Fault> kFaults = [] {
    std::vector<Fault> all = row_faults();
    for (const auto& more :
         {ring_faults(), state_faults(), trie_faults(), shared_rows_faults(), stored_rows_faults(),
          optimized_rows_faults(), optimized_trie_faults()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kFaults;
}

}  // namespace kvo::snapshot
