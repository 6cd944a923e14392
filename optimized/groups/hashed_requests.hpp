// optimized/groups/hashed_requests.hpp: requests of `groups.blocks` whose contents are found by
// hash.
//
// A key is the number of a content, as in the reference: contents get numbers in the order of their
// coming, and none is forgotten. Each is verified token by token (content_index.hpp).
// Source   rules PX-10 to PX-13, PX-42; GR-3.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optimized/prefix/content_index.hpp"
#include "reference/prefix/parts.hpp"

namespace kvo::optimized {

class HashedRequests final : public prefix::RequestTable {
 public:
  /// Keys stand for `unit` tokens, and hold the `lookahead` tokens that follow. Fewer hash bits are
  /// for tests.
  HashedRequests(std::int64_t unit, std::int64_t lookahead, bool enable_caching,
                 unsigned hash_bits = ContentIndex::kAllBits);

  [[nodiscard]] std::int64_t keys() const override { return std::ssize(index_); }

 private:
  [[nodiscard]] ContentIndex::Id root_of(const Text& text);
  void add_keys(Text& text, Chain& chain) override;

  std::int64_t unit_;
  std::int64_t lookahead_;
  ContentIndex index_;
  std::string root_text_;
  std::vector<ChainHash> hashes_;  ///< of the units that get keys
};

}  // namespace kvo::optimized
