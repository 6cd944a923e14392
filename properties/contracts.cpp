#include "properties/contracts.hpp"

#include <filesystem>

#include "cuda/device/open.hpp"
#include "cuda/layered/subjects.hpp"
#include "cuda/positional/subjects.hpp"
#include "cuda/provider/subjects.hpp"
#include "cuda/snapshot/subjects.hpp"
#include "cuda/views/subjects.hpp"
#include "optimized/block_pool/subjects.hpp"
#include "optimized/cells/subjects.hpp"
#include "optimized/layered/subjects.hpp"
#include "optimized/positional/subjects.hpp"
#include "optimized/prefix/subjects.hpp"
#include "optimized/provider/subjects.hpp"
#include "optimized/sampling/subjects.hpp"
#include "optimized/snapshot/subjects.hpp"
#include "optimized/views/subjects.hpp"
#include "properties/block_pool/contract.hpp"
#include "properties/cells/contract.hpp"
#include "properties/cells/oracle.hpp"
#include "properties/devices/mutants/device_mutant.hpp"
#include "properties/generation/contract.hpp"
#include "properties/generation/lowering.hpp"
#include "properties/generation/oracle.hpp"
#include "properties/layered/contract.hpp"
#include "properties/positional/contract.hpp"
#include "properties/positional/oracle.hpp"
#include "properties/prefix/contract.hpp"
#include "properties/prefix/oracle.hpp"
#include "properties/provider/contract.hpp"
#include "properties/sampling/contract.hpp"
#include "properties/snapshot/contract.hpp"
#include "properties/snapshot/oracle.hpp"
#include "properties/views/contract.hpp"
#include "properties/views/oracle.hpp"
#include "reference/block_pool/subjects.hpp"
#include "reference/cells/subjects.hpp"
#include "reference/generation/subjects.hpp"
#include "reference/layered/subjects.hpp"
#include "reference/positional/subjects.hpp"
#include "reference/prefix/subjects.hpp"
#include "reference/provider/subjects.hpp"
#include "reference/sampling/subjects.hpp"
#include "reference/snapshot/subjects.hpp"
#include "reference/views/subjects.hpp"

namespace kvo {

namespace {

ContractRow prefix_row() {
  return {.name = "prefix",
          .references = prefix::references,
          .optimized = optimized::prefix_subjects,
          .generators = prefix::generators,
          .lowerings = prefix::lowerings,
          .oracle = prefix::history_oracle,
          .laws = prefix::laws,
          .mutants = prefix::mutants};
}

ContractRow cells_row() {
  return {.name = "cells",
          .references = cells::references,
          .optimized = optimized::cells_subjects,
          .generators = cells::generators,
          .lowerings = cells::lowerings,
          .oracle = cells::history_oracle,
          .laws = cells::laws,
          .mutants = cells::mutants};
}

}  // namespace

std::vector<ContractRow> contract_rows() {
  return {
      {.name = "layered",
       .references = layered::references,
       .optimized = optimized::layered_subjects,
       .devices = cuda::layered_subjects,
       .generators = layered::generators,
       .lowerings = layered::lowerings,
       .laws = layered::laws,
       .mutants = layered::mutants},
      {.name = "block_pool",
       .references = block_pool::references,
       .optimized = optimized::block_pool_subjects,
       .generators = block_pool::generators,
       .mutants = block_pool::mutants},
      {.name = "provider",
       .references = provider::references,
       .optimized = optimized::provider_subjects,
       .devices = cuda::provider_subjects,
       .generators = provider::generators,
       .lowerings = provider::lowerings,
       .laws = provider::laws,
       .mutants = provider::mutants,
       .device_mutants = devices::provider_device_mutants},
      {.name = "positional",
       .references = positional::references,
       .optimized = optimized::positional_subjects,
       .devices = cuda::positional_subjects,
       .generators = positional::generators,
       .lowerings = positional::lowerings,
       .oracle = positional::history_oracle,
       .laws = positional::laws,
       .mutants = positional::mutants,
       .device_mutants = devices::positional_device_mutants},
      {.name = "snapshot",
       .references = snapshot::references,
       .optimized = optimized::snapshot_subjects,
       .devices = cuda::snapshot_subjects,
       .generators = snapshot::generators,
       .lowerings = snapshot::lowerings,
       .oracle = snapshot::history_oracle,
       .laws = snapshot::laws,
       .mutants = snapshot::mutants,
       .device_mutants = devices::snapshot_device_mutants},
      {.name = "sampling",
       .references = sampling::references,
       .optimized = optimized::sampling_subjects,
       .generators = sampling::generators,
       .laws = sampling::laws,
       .mutants = sampling::mutants},
      {.name = "generation",
       .references = generation::references,
       .generators = generation::generators,
       .lowerings = generation::lowerings,
       .oracle = generation::recompute_oracle,
       .laws = generation::laws,
       .mutants = generation::mutants},
      {.name = "views",
       .references = views::references,
       .optimized = optimized::views_subjects,
       .devices = cuda::views_subjects,
       .generators = views::generators,
       .lowerings = views::lowerings,
       .oracle = views::history_oracle,
       .laws = views::laws,
       .mutants = views::mutants},
      prefix_row(),
      cells_row(),
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
