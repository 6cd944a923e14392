// tools/adapters/library.hpp: caches of shared libraries that export kvoracle.h.
#pragma once

#include <string>
#include <vector>

#include "properties/campaign/contracts.hpp"

namespace kvo::tools {

/// The subjects that a shared library has, one a kind, by the variant "lib:PATH". Each process
/// loads it when it opens the first session; what crashes there is a verdict, as with caches in
/// C++.
/// Throws  UsageError: it cannot be loaded; exports no kvoracle_library_of; another version; a
///         greeting that is none, as subjects_of_adapter.
[[nodiscard]] std::vector<Subject> subjects_of_library(const Contracts& contracts,
                                                       const std::string& path);

}  // namespace kvo::tools
