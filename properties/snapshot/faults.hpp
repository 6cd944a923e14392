// properties/snapshot/faults.hpp: what is done wrong in the caches of contract `snapshot`.
#pragma once

#include <vector>

#include "properties/seeding/fault.hpp"

namespace kvo::snapshot {

/// One row a mutant. Numbers and classes (B001, F01) are those of the corpus of real bugs.
[[nodiscard]] const std::vector<seeding::Fault>& faults();

/// Those of them by which snapshots share rows with a cache.
[[nodiscard]] std::vector<seeding::Fault> shared_rows_faults();

/// Those of them in the optimized caches of rows and states.
[[nodiscard]] std::vector<seeding::Fault> optimized_rows_faults();

/// Those of them by which rows are stored in narrow types.
[[nodiscard]] std::vector<seeding::Fault> stored_rows_faults();

/// Those of them in the optimized prefix trie.
[[nodiscard]] std::vector<seeding::Fault> optimized_trie_faults();

}  // namespace kvo::snapshot
