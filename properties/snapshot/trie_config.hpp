// properties/snapshot/trie_config.hpp: the config of a random case of snapshot.trie.
#pragma once

#include "properties/campaign/generator.hpp"
#include "reference/snapshot/trie_operations.hpp"

namespace kvo::snapshot {

/// Some layers, a limit, and how they store rows.
[[nodiscard]] TrieConfig some_trie(const CaseTerms& terms);

}  // namespace kvo::snapshot
