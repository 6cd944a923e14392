// properties/snapshot/filed_sequences.hpp: a set of sequences, and all their prefixes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>

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

}  // namespace kvo::snapshot
