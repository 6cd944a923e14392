#include "properties/contracts.hpp"

#include <filesystem>

#include "cuda/device/open.hpp"
#include "cuda/subjects.hpp"
#include "optimized/subjects.hpp"
#include "properties/contract_parts.hpp"
#include "properties/devices/mutants/device_mutant.hpp"
#include "reference/subjects.hpp"

// A list of seeded faults, which a build may leave out.
#ifdef KVO_WITHOUT_MUTANTS
#define KVO_SEEDED(list) nullptr
#else
#define KVO_SEEDED(list) list  // NOLINT(bugprone-macro-parentheses): a lambda, too
#endif

namespace kvo {

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<ContractRow> contract_rows() {
  return {
      {.name = "layered",
       .references = layered::references,
       .optimized = optimized::layered_subjects,
       .devices = cuda::layered_subjects,
       .generators = layered::generators,
       .lowerings = layered::lowerings,
       .laws = layered::laws,
       .mutants = KVO_SEEDED(layered::mutants)},
      {.name = "block_pool",
       .references = block_pool::references,
       .optimized = optimized::block_pool_subjects,
       .generators = block_pool::generators,
       .mutants = KVO_SEEDED(block_pool::mutants)},
      {.name = "provider",
       .references = provider::references,
       .optimized = optimized::provider_subjects,
       .devices = cuda::provider_subjects,
       .generators = provider::generators,
       .lowerings = provider::lowerings,
       .laws = provider::laws,
       .mutants = KVO_SEEDED(provider::mutants),
       .device_mutants = KVO_SEEDED([] { return devices::device_mutants("provider"); })},
      {.name = "positional",
       .references = positional::references,
       .optimized = optimized::positional_subjects,
       .devices = cuda::positional_subjects,
       .generators = positional::generators,
       .lowerings = positional::lowerings,
       .oracle = positional::history_oracle,
       .laws = positional::laws,
       .mutants = KVO_SEEDED(positional::mutants),
       .device_mutants = KVO_SEEDED([] { return devices::device_mutants("positional"); })},
      {.name = "snapshot",
       .references = snapshot::references,
       .optimized = optimized::snapshot_subjects,
       .devices = cuda::snapshot_subjects,
       .generators = snapshot::generators,
       .lowerings = snapshot::lowerings,
       .oracle = snapshot::history_oracle,
       .laws = snapshot::laws,
       .mutants = KVO_SEEDED(snapshot::mutants),
       .device_mutants = KVO_SEEDED([] { return devices::device_mutants("snapshot"); })},
      {.name = "sampling",
       .references = sampling::references,
       .optimized = optimized::sampling_subjects,
       .generators = sampling::generators,
       .laws = sampling::laws,
       .mutants = KVO_SEEDED(sampling::mutants)},
      {.name = "generation",
       .references = generation::references,
       .generators = generation::generators,
       .lowerings = generation::lowerings,
       .oracle = generation::recompute_oracle,
       .laws = generation::laws,
       .mutants = KVO_SEEDED(generation::mutants)},
      {.name = "views",
       .references = views::references,
       .optimized = optimized::views_subjects,
       .devices = cuda::views_subjects,
       .generators = views::generators,
       .lowerings = views::lowerings,
       .oracle = views::history_oracle,
       .laws = views::laws,
       .mutants = KVO_SEEDED(views::mutants)},
      {.name = "prefix",
       .references = prefix::references,
       .optimized = optimized::prefix_subjects,
       .generators = prefix::generators,
       .lowerings = prefix::lowerings,
       .oracle = prefix::history_oracle,
       .laws = prefix::laws,
       .mutants = KVO_SEEDED(prefix::mutants)},
      {.name = "groups",
       .references = groups::references,
       .optimized = optimized::groups_subjects,
       .generators = groups::generators,
       .lowerings = groups::lowerings,
       .oracle = groups::history_oracle,
       .laws = groups::laws,
       .mutants = KVO_SEEDED(groups::mutants)},
      {.name = "cells",
       .references = cells::references,
       .optimized = optimized::cells_subjects,
       .generators = cells::generators,
       .lowerings = cells::lowerings,
       .oracle = cells::history_oracle,
       .laws = cells::laws,
       .mutants = KVO_SEEDED(cells::mutants)},
      {.name = "dynamic",
       .references = dynamic::references,
       .generators = dynamic::generators,
       .lowerings = dynamic::lowerings,
       .oracle = dynamic::history_oracle,
       .laws = dynamic::laws,
       .mutants = KVO_SEEDED(dynamic::mutants)},
      {.name = "mlx_lm",
       .references = mlx_lm::references,
       .generators = mlx_lm::generators,
       .lowerings = mlx_lm::lowerings,
       .oracle = mlx_lm::history_oracle,
       .laws = mlx_lm::laws,
       .mutants = KVO_SEEDED(mlx_lm::mutants)},
      {.name = "events",
       .references = events::references,
       .generators = events::generators,
       .oracle = events::history_oracle,
       .laws = events::laws,
       .mutants = KVO_SEEDED(events::mutants)},
  };
}

const Contracts& contracts() {
  static const Contracts kContracts(contract_rows(), {}, cuda::open_device);
  return kContracts;
}

traces::TraceResult<traces::LogReader> open_log(const std::string& path,
                                                const Contracts& contracts) {
  if (!std::filesystem::exists(path))
    for (const traces::EmbeddedFile& file : rule_case_files())
      if (file.name == path)
        return traces::LogReader::in_memory(path, file.text, contracts.kind_finder());
  return traces::LogReader::open(path, contracts.kind_finder());
}

}  // namespace kvo
