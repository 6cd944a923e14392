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
  /// The next operation, the first time operation 0; of that request, or of none. `shows`: it only
  /// shows what the one before has done.
  void begin(std::optional<std::int64_t> request, bool shows = false) {
    ++operation_;
    if (!shows) cause_ = {.went = true, .operation = operation_, .request = request};
  }
  /// A request is made, or made anew: contents[i] is that of its first i tokens.
  void made(std::int64_t request, std::span<const Content> contents, TokensView tokens);
  /// Its sequence goes on; `contents` of all of it.
  void grew(std::int64_t request, std::span<const Content> contents, TokensView tokens);
  /// So many of its tokens have rows: it has seen them itself.
  void computed(std::int64_t request, std::int64_t tokens);
  /// The first carrier of a content came, or the last one went, for that group of layers. @{
  void stored(Content content, std::int64_t group = 0) { fates_[{content, group}] = {}; }
  void gone(Content content, std::int64_t group = 0) {
    if (const auto fate = fates_.find({content, group}); fate != fates_.end())
      fate->second = cause_;
  }
  /// @}

  /// What a lookup asks of a cache.
  struct Asked {
    std::int64_t request = 0;
    std::int64_t tokens = 0;  ///< of the prompt
    std::int64_t hit = 0;     ///< of these; chunks may hit beyond the prompt
    /// By group of layers: tokens that are held or not as one; 0: the group is not shared.
    std::vector<std::int64_t> units = {1};
    std::int64_t beyond = 0;    ///< tokens behind a unit that its key covers, too
    bool reads = true;          ///< false: the request, or the config, reads no cache
    bool drops = false;         ///< draft heads give up the last unit
    std::int64_t most_hit = 0;  ///< tokens that a hit may have
  };
  using Held = std::function<bool(Content content, std::int64_t group)>;
  /// A lookup; `contents` of the whole sequence. `held`: whether a group holds a unit's content.
  void looked_up(const Asked& asked, std::span<const Content> contents, const Held& held);

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
  /// What became of a unit that all groups would have to hold: those that hold it, do not, or
  /// cannot, as no hit may end with it.
  struct Unit {
    std::int64_t whole = 0;  ///< its end, that of the longest group
    bool some_hold = false;
    bool some_cannot = false;
    std::optional<std::int64_t> lacking = std::nullopt;  ///< the first group that does not
    const Fate* went = nullptr;                          ///< of it there
  };
  [[nodiscard]] Unit unit_at(std::int64_t token, const Asked& asked,
                             std::span<const Content> contents, const Held& held) const;
  /// How many leading tokens another sequence had, and whose that was.
  [[nodiscard]] std::pair<std::int64_t, std::optional<std::int64_t>> known(
      const Seen& seen, const Sequence& own, std::span<const Content> contents) const;

  std::int64_t operation_ = -1;
  Fate cause_ = {};                                  ///< of what goes now
  std::map<std::int64_t, Sequence> sequences_ = {};  ///< by request
  std::vector<std::int64_t> makers_ = {};            ///< request of each sequence that was made
  Seen seen_ = {};
  Seen seen_bare_ = {};
  Contents bare_ = {};
  std::map<std::pair<Content, std::int64_t>, Fate> fates_ = {};  ///< of all that was ever stored
  std::vector<Lookup> lookups_ = {};
};

}  // namespace kvo::prefix
