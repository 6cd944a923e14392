// optimized/subjects.hpp: the caches that are fast on a CPU, one line each in subjects.cpp.
#pragma once

#include <vector>

#include "reference/block_pool/contract.hpp"
#include "reference/contract/subject.hpp"

namespace kvo::optimized {

/// Every optimized cache.
[[nodiscard]] const std::vector<Subject>& subjects();

/// Makes the pool behind block_pool.stack@optimized, for laws about threads.
[[nodiscard]] const block_pool::MakePool& pool_maker();

}  // namespace kvo::optimized
