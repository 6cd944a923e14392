// reference/positional/subjects.hpp: the reference of each cache kind of contract `positional`.
#pragma once

#include <vector>

#include "reference/positional/operations.hpp"

namespace kvo::positional {

/// How the reference of a kind makes its caches: CausalCache, EncoderCache or WrapperCache.
[[nodiscard]] MakeCache reference_of(const CacheKind& kind);

/// One subject a kind, in the order in which kinds are listed.
[[nodiscard]] std::vector<Subject> references();

}  // namespace kvo::positional
