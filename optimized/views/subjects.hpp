// optimized/views/subjects.hpp: the optimized cache of contract `views`.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace kvo::optimized {

/// One subject a kind.
[[nodiscard]] std::vector<Subject> views_subjects();

}  // namespace kvo::optimized
