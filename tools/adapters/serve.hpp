// tools/adapters/serve.hpp: caches of this program as an adapter.
#pragma once

#include <istream>
#include <span>

#include "reference/contract/subject/subject.hpp"

namespace kvo::tools {

/// Answers requests of `requests` by sessions of the subjects, one a kind, until there are no more.
/// Answers go to the file `answers`.
void serve_subjects(std::span<const Subject* const> subjects, std::istream& requests, int answers);

}  // namespace kvo::tools
