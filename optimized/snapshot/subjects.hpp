// optimized/snapshot/subjects.hpp: the optimized caches of contract `snapshot`.
#pragma once

#include <vector>

#include "optimized/snapshot/block.hpp"
#include "reference/contract/subject/subject.hpp"
#include "reference/snapshot/cache.hpp"

namespace kvo::optimized {

/// Makes caches whose rows count as bytes of `live`.
[[nodiscard]] snapshot::MakeCaches snapshot_caches(const LiveBytesPtr& live);

/// One subject a kind that has one.
[[nodiscard]] std::vector<Subject> snapshot_subjects();

}  // namespace kvo::optimized
