// properties/positional/explanation.hpp: which position went, was to go, or is seen, where a get
// differs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reference/positional/operations.hpp"

namespace kvo::positional {

struct ExplainedCase {
  const CacheKind& kind;
  const Setup& setup;
};

/// Sentences about the first cell of the last operation of `script`, a get, that `got` shows
/// otherwise than `want`. The script's own reference says what its cells hold.
[[nodiscard]] std::vector<std::string> explain_get(const ExplainedCase& explained,
                                                   std::span<const Op> script,
                                                   const Get::Returns& want,
                                                   const Get::Returns& got);

}  // namespace kvo::positional
