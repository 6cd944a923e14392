// reference/snapshot/make_trie.hpp: the reference of the prefix trie.
#pragma once

#include <cstdint>
#include <memory>

#include "reference/snapshot/trie.hpp"

namespace kvo::snapshot {

/// An empty trie over layers that nobody has written to.
[[nodiscard]] std::unique_ptr<PrefixTrie> make_trie(Layers layers, std::int64_t limit,
                                                    QuirkSet<Quirk> quirks);

}  // namespace kvo::snapshot
