// reference/views/subjects.hpp: the reference of each cache kind of contract `views`.
#pragma once

#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace kvo::views {

/// One subject a kind.
[[nodiscard]] std::vector<Subject> references();

}  // namespace kvo::views
