// optimized/prefix/content_index.hpp: what blocks may contain, each content once.
//
// Words    content   the tokens of a block, and the content before it: equal contents have one
//                    number as long as anybody uses it. So a request looks its blocks up when its
//                    tokens come, and finds holders later without a hash.
//          root      a content without tokens: a namespace.
//          holder    a block that carries the content as its key; who holds it first is told here.
//          name      the contract's key of a content: its hash, moved on where another has it.
//          weak      of a hash: cut down to few bits, so that tests meet collisions.
// Source   rules PX-10 to PX-13, PX-16.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "optimized/prefix/flat_index.hpp"
#include "reference/prefix/cache.hpp"

namespace kvo::optimized {

/// The 128 bits that 16 bytes at a time are folded into.
struct ChainHash {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
};

/// The hash of tokens, or of characters, behind what `before` is the hash of.
[[nodiscard]] ChainHash hash_behind(ChainHash before, std::string_view text);
[[nodiscard]] ChainHash hash_behind(ChainHash before, prefix::TokensView tokens);

class ContentIndex {
 public:
  using Id = FlatIndex::Id;
  static constexpr Id kNone = FlatIndex::kNone;
  static constexpr unsigned kAllBits = 64;

  struct Content {
    prefix::Key name = {};
    Id before = kNone;           ///< of a forgotten one: the next forgotten one
    std::uint32_t users = 0;     ///< requests, holders and contents behind it
    std::uint32_t last = kNone;  ///< the last block that holds it
    std::uint32_t depth = 0;     ///< contents before it, the root included
  };

  /// Contents have `tokens` tokens. With fewer hash bits none is ever forgotten, so that a name
  /// is never given to a second content.
  explicit ContentIndex(std::size_t tokens, unsigned hash_bits = kAllBits);

  /// The content of a namespace, which gains a user.
  /// Throws std::bad_alloc; nothing has changed then.
  Id use_root(std::string_view text);
  [[nodiscard]] static ChainHash root_hash(std::string_view text);

  /// Room for so many new contents. Throws std::bad_alloc; nothing has changed then.
  void reserve(std::size_t more);
  /// The content of these tokens behind `before`, which gains a user. Their hash is `hash`.
  /// Requires  room for one.
  Id use(Id before, ChainHash hash, const prefix::Token* tokens) noexcept;
  /// A user goes. What nobody uses is forgotten, and what only that used.
  void leave(Id content) noexcept;

  [[nodiscard]] Content& operator[](Id content) { return contents_[content]; }
  [[nodiscard]] const Content& operator[](Id content) const { return contents_[content]; }
  /// The first block that holds it, or kNone. These lie by themselves, for lookups ask no more.
  [[nodiscard]] std::uint32_t& first(Id content) { return firsts_[content]; }
  [[nodiscard]] std::uint32_t first(Id content) const { return firsts_[content]; }
  /// The content of that name, or kNone.
  [[nodiscard]] Id find(const prefix::Key& name) const;
  /// Has the machine fetch what use() will look at.
  void prefetch(ChainHash hash) const {
    filed_.prefetch(static_cast<std::uint32_t>(cut(hash).low));
  }
  /// Contents that are known, without roots.
  [[nodiscard]] std::size_t size() const { return filed_.size(); }

 private:
  [[nodiscard]] ChainHash cut(ChainHash hash) const;
  [[nodiscard]] Id make() noexcept;
  void sweep_roots() noexcept;
  // Roots have numbers of their own, so that they need no tokens.
  static constexpr Id kRoots = Id{1} << 31U;
  [[nodiscard]] std::uint32_t& users(Id content) {
    return content < kRoots ? contents_[content].users : root_users_[content - kRoots];
  }

  std::size_t tokens_of_one_;
  unsigned hash_bits_;
  std::vector<Content> contents_;
  std::vector<std::uint32_t> firsts_;  ///< [content]
  std::vector<prefix::Token> tokens_;  ///< [content][token]
  Id forgotten_ = kNone;
  std::size_t forgotten_count_ = 0;
  FlatIndex filed_;  ///< all but roots
  std::map<std::string, Id, std::less<>> roots_;
  std::vector<std::uint32_t> root_users_;
  std::vector<Id> root_unused_;  ///< with room for all
  static constexpr std::size_t kLeastSweep = 64;
  std::size_t sweep_at_ = kLeastSweep;  ///< roots from which unused ones are looked for
};

}  // namespace kvo::optimized
