// tools/probe/serve/reader.hpp: what tokens read in rows that a cache shows, by the probe's rule.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "reference/probe/rows.hpp"
#include "tools/probe/serve/cache.hpp"

namespace kvo::tools {

/// What each token of a pass reads in a layer: the rows whose K is turned to the position that it
/// looks back to. What a fault makes unknown reads as 0.
/// `first`: position of the first token. Rows below position `far_end_hidden` are not seen by a
/// token that could see them only just: of class c and 2^c - 1 positions after them.
[[nodiscard]] std::vector<probe::PerHead<probe::Read>> read_rows(
    const probe::Tables& tables, std::span<const probe::Token> tokens, std::size_t first,
    const SeenRows& seen, std::size_t far_end_hidden);

}  // namespace kvo::tools
