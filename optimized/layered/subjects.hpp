// optimized/layered/subjects.hpp: fast caches of contract `layered`.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace kvo::optimized {

/// One subject a kind that has one.
[[nodiscard]] std::vector<Subject> layered_subjects();

}  // namespace kvo::optimized
