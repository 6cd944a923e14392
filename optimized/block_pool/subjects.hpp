// optimized/block_pool/subjects.hpp: fast caches of contract `block_pool`.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace kvo::optimized {

/// One subject a kind that has one.
[[nodiscard]] std::vector<Subject> block_pool_subjects();

}  // namespace kvo::optimized
