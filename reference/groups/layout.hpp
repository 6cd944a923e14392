// reference/groups/layout.hpp: what follows from a config alone: sizes, lookup sets, boundaries.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reference/groups/cache.hpp"

namespace kvo::groups {

/// Groups of equal kind and parameters, which are looked up together (GR-5).
struct LookupSet {
  Ids groups = {};     ///< in order
  bool drops = false;  ///< whether one of them is a dropping group (GR-7)
};

/// Sizes in tokens.
struct Layout {
  std::int64_t scheduler_block = 1;  ///< S
  std::int64_t alignment = 1;        ///< A
  bool partial = false;              ///< GR-6
  std::vector<LookupSet> sets = {};  ///< of cacheable groups, in the order of lookups
  std::vector<bool> drops = {};      ///< [group], also those whose set drops
  SetupReturns shown = {};           ///< what setup returns of it
};

/// GR-5 to GR-9. Errors  kPrecondition: GR-8; GR-9, but kNotSupported without kSetupAborts.
[[nodiscard]] Result<Layout> layout_of(const Options& options, QuirkSet<Quirk> quirks);

/// The tokens that the next one does not need, of so many before it; may be
/// below 0 (GR-2).
[[nodiscard]] std::int64_t skipped(const Group& group, std::int64_t tokens);
/// Whether hits may end inside a block (GR-6), of units of that size.
[[nodiscard]] bool has_partial_hits(std::span<const Group> groups, std::int64_t unit);
/// The least common multiple of the block sizes; nothing beyond kMostTokens.
[[nodiscard]] std::optional<std::int64_t> scheduler_block_of(std::span<const Group> groups);
/// Where a state of so many tokens is held (GR-44).
[[nodiscard]] std::int64_t position_of(std::int64_t tokens, std::int64_t block, bool drop,
                                       std::int64_t lookahead);
/// Where a prompt is promised to be hit again (GR-22, GR-55): ascending, equal ones once.
[[nodiscard]] Ids boundaries_of(std::int64_t prompt, std::int64_t block, bool drop);

}  // namespace kvo::groups
