// optimized/subjects.hpp: the caches that are fast on a CPU, one line each in subjects.cpp.
#pragma once

#include <vector>

#include "reference/contract/subject.hpp"

namespace kvo::optimized {

/// Every optimized cache.
[[nodiscard]] const std::vector<Subject>& subjects();

}  // namespace kvo::optimized
