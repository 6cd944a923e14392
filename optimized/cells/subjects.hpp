// optimized/cells/subjects.hpp: fast caches of contract `cells`.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace kvo::optimized {

/// One subject a kind that has one.
[[nodiscard]] std::vector<Subject> cells_subjects();

}  // namespace kvo::optimized
