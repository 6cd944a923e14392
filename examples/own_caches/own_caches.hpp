// examples/own_caches/own_caches.hpp: four sound caches that differ from their contracts, each with
// ten planted faults.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject/subject.hpp"

namespace own {

/// A cache and its faults. Fault 0 is none; fault n is `faults[n - 1]`.
struct Cache {
  std::vector<std::string_view> faults;
  kvo::Subject (*make)(std::string variant, int fault);
};

[[nodiscard]] Cache layered_vectors();  ///< layered.vector: two vectors a layer
[[nodiscard]] Cache positional_map();   ///< positional.causal: a map from position to row
[[nodiscard]] Cache prefix_manager();   ///< prefix.blocks: least recently used blocks
[[nodiscard]] Cache
provider_paged_copy();  ///< provider.paged: results are copied out of the blocks

/// All of them.
[[nodiscard]] inline std::vector<Cache> caches() {
  return {layered_vectors(), positional_map(), prefix_manager(), provider_paged_copy()};
}

/// All subjects: `own`, and `own:FAULT` for each fault, which take part where they are named.
[[nodiscard]] inline std::vector<kvo::Subject> subjects() {
  std::vector<kvo::Subject> all;
  for (const Cache& cache : caches()) {
    all.push_back(cache.make("own", 0));
    for (std::size_t i = 0; i < cache.faults.size(); ++i) {
      all.push_back(cache.make("own:" + std::string(cache.faults[i]), static_cast<int>(i) + 1));
      all.back().on_request = true;
    }
  }
  return all;
}

}  // namespace own
