#include "properties/snapshot/faults.hpp"

namespace kvo::snapshot {
namespace {

constexpr std::string_view kMatch = "optimized/snapshot/token_match.cpp";
constexpr std::string_view kNode = "optimized/snapshot/prefix_tree.cpp";
constexpr std::string_view kTree = "optimized/snapshot/prefix_tree.cpp";
constexpr std::string_view kTrie = "optimized/snapshot/prefix_trie.cpp";

}  // namespace

std::vector<seeding::Fault> optimized_trie_faults() {
  return {
      {"snapshot.trie",
       "last_block_not_compared",
       "the last whole block of an edge counts as matched",
       "B053, F06: openvino.genai is reported to have trusted a hash and compared no tokens",
       {{kMatch, "same(a + at, b + at, block)",
         "(at + 2 * kBlock > count || same(a + at, b + at, block))"}}},
      {"snapshot.trie",
       "last_token_not_compared",
       "the last token that an edge and a prompt can share counts as matched",
       "B055, F06: the key at the boundary of a prefix was trusted unseen in Ollama's trie",
       {{kMatch, "a[at] == b[at]", "(at + 1 == count || a[at] == b[at])"}}},
      {"snapshot.trie",
       "end_of_path_used",
       "of the path that a session used only the end gets the time",
       "B073, F08: vmlx-swift released chains root first, which made the root the oldest",
       {{kTrie, "for (PrefixNode* node : active_) node->last_used = clock_;",
         "active_.back()->last_used = clock_;"}}},
      {"snapshot.trie",
       "new_list_not_counted",
       "the bytes of a list that a node gets are not added to the counter",
       "B075, F08: a counter of TensorRT-LLM was kept for where the block had been put",
       {{kTrie, "paged_out_ += node.bytes();", "(void)0;"}}},
      {"snapshot.trie",
       "bytes_of_the_last_layer",
       "of the snapshots of a node only the last one counts",
       "B114, F13: Ollama's accounting missed what a recurrent snapshot held",
       {{kNode, "bytes += snapshot::size_of(one);", "bytes = snapshot::size_of(one);"}}},
      {"snapshot.trie",
       "numbers_kept",
       "nodes keep their numbers when one is added",
       "B062, F07: vLLM kept the result of a look-up over a change of what was looked up",
       {{kTree, "numbered_.clear();", "(void)0;", "if (child->lost) child->tokens.forget();"}}},
  };
}

}  // namespace kvo::snapshot
