// optimized/positional/subjects.hpp: fast caches of contract `positional`.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace kvo::optimized {

/// One subject a kind that has one.
[[nodiscard]] std::vector<Subject> positional_subjects();

}  // namespace kvo::optimized
