// reference/cells/subjects.hpp: the reference of each cache kind of contract `cells`.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace kvo::cells {

/// One subject a kind, in the order in which kinds are listed.
[[nodiscard]] std::vector<Subject> references();

}  // namespace kvo::cells
