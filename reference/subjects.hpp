// reference/subjects.hpp: the reference caches, one line each in subjects.cpp.
#pragma once

#include <vector>

#include "reference/contract/subject.hpp"

namespace kvo::reference {

/// Every reference cache. A cache kind appears once.
[[nodiscard]] const std::vector<Subject>& subjects();

}  // namespace kvo::reference
