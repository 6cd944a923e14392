// properties/snapshot/trie_history.hpp: the history of a prefix trie.
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
#pragma once

#include <memory>

#include "properties/runner/oracle.hpp"
#include "reference/snapshot/trie_operations.hpp"

namespace kvo::snapshot {

[[nodiscard]] std::unique_ptr<Oracle> trie_history(const TrieConfig& config,
                                                   QuirkSet<Quirk> quirks);

}  // namespace kvo::snapshot
