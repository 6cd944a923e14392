// tools/probe/serve/faults.hpp: what goes wrong in an engine for tests: faults that
// `kvoracle probe check` must find, and some that it must not.
//
// A fault of the cache changes what a request reads in the rows that it reuses. So it shows only
// where rows are shared, and the same text alone has the right answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tools/probe/serve/cache.hpp"

namespace kvo::tools {

/// A text that was answered, and its rows by position.
struct ServedText {
  ProbeTokens tokens;
  std::vector<ServedRow> rows;
};

/// A request that reuses rows.
struct Reuse {
  const probe::Tables* tables;
  std::span<const probe::Token> prompt;
  std::size_t reused = 0;    ///< rows; at least ServedCache::kLeastReused
  const ServedText* source;  ///< a text with these rows
  const ServedText* other;   ///< a text with other rows; null: there is none
  std::uint64_t seed = 0;
};

/// What a request reads in the place of the rows at its positions.
struct Damage {
  std::vector<std::optional<ServedRow>> rows = {};  ///< by position; nothing: as in the cache
  /// A token does not see the rows below this position that it could see only just.
  std::size_t far_end_hidden = 0;
};

/// What a fault changes.
enum class Harm : std::uint8_t {
  kNone,
  kCache,       ///< rows
  kHarmless,    ///< rows, in a way that changes no token
  kArithmetic,  ///< the last token of some answers, which is always the same one
  kSampling,    ///< the last token of every other answer
};

/// The verdict of `probe check` on a wrong answer; "none" where no answer is wrong.
[[nodiscard]] constexpr std::string_view verdict_on(Harm harm) {
  switch (harm) {
    case Harm::kCache:
      return "memory";
    case Harm::kArithmetic:
      return "arithmetic";
    case Harm::kSampling:
      return "neither";
    default:
      return "none";
  }
}

/// Rows [first, last) of a request, which are those of the source from `from` on.
struct DamagedRows {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t from = 0;
};

/// The cells beside one.
struct CellsBeside {
  ServedCell pair;         ///< of the row that it forms a pair with
  ServedCell next;         ///< of the row after it; without content after the last reused one
  ServedCell other_head;   ///< of the row, in the head that it forms a pair with
  ServedCell other_layer;  ///< of the row, in the layer that it forms a pair with
  ServedCell foreign;      ///< of the other text at the same position; the cell itself: none
};

/// One fault.
struct ServerFault {
  std::string_view name;
  std::string_view doc;
  int number = 0;  ///< in the list of docs/probe.md; 0: none
  Harm harm = Harm::kCache;
  /// Which rows; null: no rows are changed.
  DamagedRows (*rows)(const Reuse& reuse) = nullptr;
  /// What happens to each of their cells; null: nothing else.
  void (*change)(ServedCell& cell, const CellsBeside& beside) = nullptr;
  bool one_layer = false;  ///< only in one layer, by the seed
  bool one_head = false;   ///< only in one head, by the seed
  bool hides_far_end = false;
};

/// All faults; the first one is none.
[[nodiscard]] std::span<const ServerFault> server_faults();

/// What the fault does to a request.
[[nodiscard]] Damage damage_of(const ServerFault& fault, const Reuse& reuse);

}  // namespace kvo::tools
