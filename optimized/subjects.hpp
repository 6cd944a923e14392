// optimized/subjects.hpp: the fast caches of each contract.
#pragma once

#include <memory>
#include <vector>

#include "optimized/snapshot/block.hpp"
#include "reference/contract/subject/subject.hpp"
#include "reference/sampling/sampler.hpp"
#include "reference/snapshot/cache.hpp"

namespace kvo::optimized {

/// One subject for each kind that has a fast cache, in the order in which kinds are listed. @{
[[nodiscard]] std::vector<Subject> layered_subjects();
[[nodiscard]] std::vector<Subject> block_pool_subjects();
[[nodiscard]] std::vector<Subject> provider_subjects();
[[nodiscard]] std::vector<Subject> positional_subjects();
[[nodiscard]] std::vector<Subject> snapshot_subjects();
[[nodiscard]] std::vector<Subject> sampling_subjects();
[[nodiscard]] std::vector<Subject> views_subjects();
[[nodiscard]] std::vector<Subject> prefix_subjects();
[[nodiscard]] std::vector<Subject> groups_subjects();
[[nodiscard]] std::vector<Subject> cells_subjects();
/// @}

/// The sampler of sampling_subjects().
[[nodiscard]] std::unique_ptr<sampling::Sampler> make_selecting_sampler(
    QuirkSet<sampling::Quirk> quirks);

/// Makes the caches of snapshot_subjects(). Their rows count as bytes of `live`.
[[nodiscard]] snapshot::MakeCaches snapshot_caches(const LiveBytesPtr& live);

}  // namespace kvo::optimized
