// reference/sampling/subjects.hpp: the reference of contract `sampling`.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace kvo::sampling {

/// One subject a kind, in the order in which kinds are listed.
[[nodiscard]] std::vector<Subject> references();

}  // namespace kvo::sampling
