// optimized/prefix/subjects.hpp: fast caches of contract `prefix`.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace kvo::optimized {

/// One subject a kind that has one.
[[nodiscard]] std::vector<Subject> prefix_subjects();

}  // namespace kvo::optimized
