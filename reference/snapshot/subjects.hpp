// reference/snapshot/subjects.hpp: the reference of each cache kind of contract `snapshot`.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/snapshot/cache.hpp"

namespace kvo::snapshot {

[[nodiscard]] MakeCaches reference_caches();

/// One subject a kind, in the order in which kinds are listed.
[[nodiscard]] std::vector<Subject> references();

}  // namespace kvo::snapshot
