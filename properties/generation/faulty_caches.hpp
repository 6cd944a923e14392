// properties/generation/faulty_caches.hpp: caches with a fault that a generation must notice.
#pragma once

#include <vector>

#include "properties/campaign/mutant.hpp"

namespace kvo::generation {

/// Of provider.contiguous: its reference behind a session that does one thing wrong between
/// generation and cache, as engines have done.
[[nodiscard]] std::vector<Mutant> faulty_caches();

}  // namespace kvo::generation
