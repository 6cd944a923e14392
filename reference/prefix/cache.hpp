// reference/prefix/cache.hpp: the contract `prefix`: computed prefixes kept for later requests.
//
// Words    unit       the smallest thing that is shared: a block (blocks.hpp), a page (radix.hpp);
//                     counted from the start of a sequence, never a part of one (PX-1, PX-2).
//          held       of a unit: registered under what it contains, so that it can be hit (PX-3).
//          slot       place of one token's K and V rows; neither cache holds rows.
//          namespace  requests of different ones never share a unit (PX-5).
//          pinned     of a unit: somebody uses it, so that it is not evicted (PX-4). What is held
//                     and not pinned goes from the tail of a sequence (PX-7).
// Lists    that a method returns as a span are the cache's own: valid until its next call.
// Errors   of every method that can fail, beside its own: kPrecondition: a request never made.
// Source   rules PX-1 to PX-89.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/describe/enum.hpp>

#include "reference/contract/describe/domain.hpp"
#include "reference/contract/values/result.hpp"
#include "reference/prefix/quirks.hpp"

namespace kvo::prefix {

using Token = std::int32_t;
using Tokens = std::vector<Token>;
/// Numbers of blocks, slots, pages or nodes.
using Ids = std::vector<std::int64_t>;
using IdsView = std::span<const std::int64_t>;
using TokensView = std::span<const Token>;

/// Sizes beyond these are refused: what an operation costs is bounded by what a cache holds.
inline constexpr std::int64_t kMostRequests = std::int64_t{1} << 20U;
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 31U;  ///< and any other count

struct RequestNumber {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.meaning = "number of the request",
                                  .least = 0,
                                  .most = kMostRequests - 1,
                                  .outside = Code::kOutOfRange};
};
struct Count {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.least = 0, .most = kMostTokens};
};
inline constexpr std::int64_t kMostUnits = std::int64_t{1} << 24U;  ///< blocks, or pages, of a pool

/// Names what a block or page contains, and all that is before it: during a cache's life two keys
/// are equal exactly if their contents are (PX-10, PX-77), and a content that is forgotten and
/// comes back has the same key. Which bits it is made of is the cache's affair.
struct Key {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const Key&, const Key&) = default;
};

enum class EventKind : std::uint8_t { kStored, kRemoved, kCleared };
BOOST_DESCRIBE_ENUM(EventKind, kStored, kRemoved, kCleared)

/// What somebody who follows the cache from outside is told (PX-40, PX-77).
struct Event {
  EventKind kind = EventKind::kCleared;
  std::vector<Key> keys = {};                ///< units that are stored or removed
  std::optional<Key> parent = std::nullopt;  ///< of stored: the unit before the first; none: start
  Tokens tokens = {};                        ///< of stored
  std::int64_t group = 0;                    ///< of layers; only in contract groups
  std::int64_t unit = 0;                     ///< tokens of a key of stored; only in contract groups
};

/// A session that shows its cache, for random scripts.
template <class Cache>
class ShowsCache {
 public:
  virtual ~ShowsCache() = default;
  [[nodiscard]] virtual const Cache& shown() const = 0;
};

}  // namespace kvo::prefix
