// properties/runner/reuse.hpp: why tokens of a prompt were computed although a cache was there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/describe.hpp"
#include "reference/contract/subject/op_stream.hpp"

namespace kvo {

/// Why a token of a prompt was not reused.
enum class Missing : std::uint8_t {
  kNeverSeen,             ///< no sequence before began like the prompt
  kDiverged,              ///< other sequences began alike, and went on otherwise before this token
  kOtherNamespace,        ///< the same tokens were seen under another salt or adapter
  kEvicted,               ///< was held, and went
  kLastBlockNotFull,      ///< was seen, but the prompt ends within its block
  kBlockGoesOnOtherwise,  ///< was seen, but the prompt diverges within its block
  kBlockOfTheLastToken,   ///< its block ends with the prompt, whose last token is always computed
  kNotStoredYet,          ///< was seen in a whole block that no cache has held yet
  kBehindGap,             ///< is held, but a block before it, or of its window, is not
  kDraftHeads,            ///< is held, and draft heads give up the last block of a hit
  kGroupLacked,           ///< other groups of layers hold it, and this one does not
  kNotLookedUp,           ///< the request, or the config, reads no cache
  kNotAnnounced,          ///< of a follower: no event that it received stores the block
  kForgotten,             ///< of a follower: is held, as events say, and the follower denies it
};
BOOST_DESCRIBE_ENUM(Missing, kNeverSeen, kDiverged, kOtherNamespace, kEvicted, kLastBlockNotFull,
                    kBlockGoesOnOtherwise, kBlockOfTheLastToken, kNotStoredYet, kBehindGap,
                    kDraftHeads, kGroupLacked, kNotLookedUp, kNotAnnounced, kForgotten)

/// "last block not full"
[[nodiscard]] std::string_view words_of(Missing why);

/// Tokens [begin, end) of a prompt that were not reused, for one reason.
struct MissedTokens {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Missing why = Missing::kNeverSeen;
  std::optional<std::int64_t> operation = std::nullopt;  ///< kEvicted: by which it went, from 0
  std::optional<std::int64_t> request = std::nullopt;    ///< kEvicted: for which request;
                                                         ///< kDiverged: whose sequence began alike
  std::optional<std::int64_t> group = std::nullopt;      ///< kGroupLacked: of layers

  /// Whether the other one tells of the same cause.
  [[nodiscard]] bool same_cause(const MissedTokens& other) const {
    return why == other.why && operation == other.operation && request == other.request &&
           group == other.group;
  }
  /// "evicted at op 12 for request 3". `from`: the first token of the prompt that diverged.
  [[nodiscard]] std::string text() const;
};
BOOST_DESCRIBE_STRUCT(MissedTokens, (), (begin, end, why, operation, request, group))

/// A lookup of a prompt. tokens = reused + the sum of all missed ones.
struct Lookup {
  std::int64_t operation = 0;  ///< from 0
  std::int64_t request = 0;    ///< of a follower: its queries, from 0
  std::int64_t tokens = 0;
  std::int64_t reused = 0;
  std::vector<MissedTokens> missed = {};  ///< ascending, without gaps
  std::string cache = {};                 ///< "worker 1 rank 0", where one lookup asks for several

  /// Adds tokens behind the others; none if there are none.
  void miss(const MissedTokens& more);
};
BOOST_DESCRIBE_STRUCT(Lookup, (), (operation, request, tokens, reused, missed, cache))

/// What lookups missed, by reason, as figures of a case. Each name begins with `name`.
[[nodiscard]] std::vector<Figure> lookup_figures(std::span<const Lookup> lookups,
                                                 const std::string& name);

}  // namespace kvo
