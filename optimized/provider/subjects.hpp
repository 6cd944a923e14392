// optimized/provider/subjects.hpp: fast caches of contract `provider`.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace kvo::optimized {

/// One subject a kind that has one.
[[nodiscard]] std::vector<Subject> provider_subjects();

}  // namespace kvo::optimized
