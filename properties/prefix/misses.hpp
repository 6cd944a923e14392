// properties/prefix/misses.hpp: why prompts are not reused, from what was seen, stored and evicted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "properties/prefix/contents.hpp"
#include "properties/runner/reuse.hpp"

namespace kvo::prefix {

/// Follows a case operation by operation: begin(), then what the operation did.
class Misses {
 public:
  /// The next operation, the first time operation 0; of that request, or of none.
  void begin(std::optional<std::int64_t> request) {
    ++operation_;
    acting_ = request;
  }
  /// A request is made, or made anew: contents[i] is that of its first i tokens.
  void made(std::int64_t request, std::span<const Content> contents, TokensView tokens);
  /// Its sequence goes on; `contents` of all of it.
  void grew(std::int64_t request, std::span<const Content> contents, TokensView tokens);
  /// So many of its tokens have rows: it has seen them itself.
  void computed(std::int64_t request, std::int64_t tokens);
  /// The first carrier of a content came, or the last one went.
  void stored(Content content) { fates_[content] = {}; }
  void gone(Content content) {
    if (const auto fate = fates_.find(content); fate != fates_.end())
      fate->second = {.went = true, .operation = operation_, .request = acting_};
  }

  /// What a lookup asks of a cache.
  struct Asked {
    std::int64_t request = 0;
    std::int64_t tokens = 0;    ///< of the prompt
    std::int64_t hit = 0;       ///< of these; chunks may hit beyond the prompt
    std::int64_t unit = 1;      ///< tokens that are held or not as one
    std::int64_t beyond = 0;    ///< tokens behind a unit that its key covers, too
    bool reads = true;          ///< false: the request, or the config, reads no cache
    bool drops = false;         ///< draft heads give up the last unit
    std::int64_t most_hit = 0;  ///< tokens that a hit may have
  };
  /// A lookup; `contents` of the whole sequence. `held`: whether a cache holds a unit's content.
  void looked_up(const Asked& asked, std::span<const Content> contents,
                 const std::function<bool(Content)>& held);

  [[nodiscard]] std::span<const Lookup> lookups() const { return lookups_; }

 private:
  /// Who had a prefix: the first sequence, and whether another one did since.
  struct Makers {
    std::int64_t first = 0;
    std::optional<std::int64_t> second = std::nullopt;
  };
  struct Fate {
    bool went = false;
    std::int64_t operation = 0;
    std::optional<std::int64_t> request = std::nullopt;
  };
  struct Sequence {
    std::int64_t maker = 0;
    std::int64_t computed = 0;       ///< tokens, at most so far
    std::vector<Content> bare = {};  ///< contents without a namespace
  };

  using Seen = std::unordered_map<Content, Makers>;
  static void have(Seen& seen, Content content, std::int64_t maker);
  /// How many leading tokens another sequence had, and whose that was.
  [[nodiscard]] std::pair<std::int64_t, std::optional<std::int64_t>> known(
      const Seen& seen, const Sequence& own, std::span<const Content> contents) const;

  std::int64_t operation_ = -1;
  std::optional<std::int64_t> acting_ = std::nullopt;
  std::map<std::int64_t, Sequence> sequences_ = {};  ///< by request
  std::vector<std::int64_t> makers_ = {};            ///< request of each sequence that was made
  Seen seen_ = {};
  Seen seen_bare_ = {};
  Contents bare_ = {};
  std::unordered_map<Content, Fate> fates_ = {};  ///< of all that was ever stored
  std::vector<Lookup> lookups_ = {};
};

}  // namespace kvo::prefix
