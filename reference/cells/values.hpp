// reference/cells/values.hpp: the contract `cells`: cells that sequences share, by streams.
//
// Words    cell       place of a token: a position or none, a shift, owners, extra data; and in a
//                     cache a row of K and one of V, the same for all layers (LC-34).
//          owners     the sequences, 0 to 255, that see a cell.
//          stream     a table of cells of its own. Unified: one for all sequences. Otherwise
//                     sequence s lives in stream s (LC-65).
//          head       where the search for cells of a stream begins.
//          ubatch     tokens of a batch that are placed and computed together.
//          primary    the one sequence that a token of several counts for in its mask (LC-38).
//          half       of a pair: the base, or the window cache. Other caches are a base.
// Ranges   [p0, p1) of positions; p0 < 0 is 0, p1 < 0 is the end.
// Errors   kPrecondition for what the contract leaves undefined, and where the original panics; in
//          both profiles nothing has changed then. In documented no error changes anything, but
//          that pending shifts may have been applied.
// Source   rules LC-1 to LC-98 and their section "Profile documented".
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/cells/quirks.hpp"
#include "reference/contract/describe/describe.hpp"
#include "reference/contract/values/result.hpp"

namespace kvo::cells {

/// Sequences are 0 to kSequences - 1.
inline constexpr std::int32_t kSequences = 256;
/// As an end: behind every position.
inline constexpr std::int32_t kMaxPosition = std::numeric_limits<std::int32_t>::max();
/// Cells of a cache, all streams of a half together, at most; no rule sets a bound.
inline constexpr std::int64_t kMostCells = std::int64_t{1} << 18;
/// Tokens of a batch at most, and sequences of all its tokens; no rule sets a bound.
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 13;
/// Tokens of a batch times cells of a stream at most; no rule sets a bound.
inline constexpr std::int64_t kMostMaskEntries = std::int64_t{1} << 24;

/// Whether the original's assertions are compiled in (LC-24, LC-49).
enum class Build : std::uint8_t { kRelease, kDebug };
BOOST_DESCRIBE_ENUM(Build, kRelease, kDebug)

enum class WindowType : std::uint8_t { kNone, kStandard, kChunked, kSymmetric };
BOOST_DESCRIBE_ENUM(WindowType, kNone, kStandard, kChunked, kSymmetric)

/// What causal = false means to a batch (LC-58).
enum class NonCausal : std::uint8_t { kAll, kSwaOnly, kSwaFull };
BOOST_DESCRIBE_ENUM(NonCausal, kAll, kSwaOnly, kSwaFull)

enum class Half : std::uint8_t { kBase, kWindow };

/// A window of `size` positions.
struct Window {
  WindowType type = WindowType::kNone;
  std::int32_t size = 0;  ///< at least 1 with a type

  /// Whether a token at p1 does not see one at p0 (LC-53). Forward only a symmetric window ends
  /// (LC-54, LC-55).
  [[nodiscard]] bool masks(std::int64_t p0, std::int64_t p1) const;
};

struct SequenceNumber {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.meaning = "sequence"};
};

/// Positions of a sequence (LC-4).
KVO_RECORD_WITH((static constexpr bool kInline = true;
                 friend bool operator==(const Extremes&, const Extremes&) = default;),
                Extremes, (std::int64_t, min, "smallest position; -1 if none", -1),
                (std::int64_t, max, "largest position; -1 if none", -1))
/// A sequence and its extremes.
KVO_RECORD(ShownSequence, (SequenceNumber, seq), (Extremes, extremes))

/// A cell that is not empty, as a table shows it.
KVO_RECORD(ShownCell, (std::int64_t, cell, "cell of its stream, from 0"),
           (std::int64_t, pos, "position"),
           (std::int64_t, shift, "positions that its key is still to be turned by"),
           (std::vector<std::int32_t>, seqs, "owners, ascending"))
/// A table of cells, for comparison (LC-3).
KVO_RECORD_WITH((static constexpr bool kInline = true;), ShownTable,
                (std::vector<ShownCell>, cells, "cells that are not empty, ascending"),
                (std::int64_t, used, "cells that are used"),
                (std::int64_t, used_min, "first used cell; 0 if none"),
                (std::int64_t, used_end, "cell after the last used one; 0 if none"),
                (bool, has_shift, "whether shifts are pending"))

/// Positions [begin, end), begin at least 0.
struct Range {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  [[nodiscard]] bool has(std::int64_t pos) const { return begin <= pos && pos < end; }
};
/// By the range rule.
[[nodiscard]] inline Range range_of(std::int32_t p0, std::int32_t p1) {
  return {p0 < 0 ? 0 : p0, p1 < 0 ? kMaxPosition : p1};
}

/// The tokens of a batch, in order.
struct Batch {
  /// One a token; absent: each goes on where its sequence ends (LC-32).
  std::optional<std::span<const std::int32_t>> positions = std::nullopt;
  std::span<const std::int64_t> sequences = {};  ///< of all tokens, one token after another
  std::span<const std::size_t> ends = {};        ///< [token], behind its last of `sequences`
  std::int64_t n_ubatch = 1;                     ///< tokens of an ubatch at most
  bool causal = true;
  /// The computation of this ubatch is interrupted (LC-57).
  std::optional<std::int64_t> abort_at = std::nullopt;

  [[nodiscard]] std::size_t tokens() const { return ends.size(); }
  /// The sequences of a token, in the caller's order.
  [[nodiscard]] std::span<const std::int64_t> sequences_of(std::size_t token) const {
    const std::size_t begin = token == 0 ? 0 : ends[token - 1];
    return sequences.subspan(begin, ends[token] - begin);
  }
};

/// What every decode asks of its batch, whatever the cache.
/// Errors  kPrecondition: n_ubatch below 1, too many tokens, a token without sequences, or not a
///         position for each token.
[[nodiscard]] Status check_batch(const Batch& batch);

/// Whether a position or shift has its type.
[[nodiscard]] inline bool is_int32(std::int64_t number) {
  return number == static_cast<std::int32_t>(number);
}

/// Errors  kOutOfRange: the value of a field is not in [low, high].
[[nodiscard]] Status check_in(std::string_view field, std::int64_t value, std::int64_t low,
                              std::int64_t high);

/// What answers an operation that the contract leaves undefined.
[[nodiscard]] inline Error refused(std::string detail) {
  return fail(Code::kPrecondition, std::move(detail));
}

}  // namespace kvo::cells
