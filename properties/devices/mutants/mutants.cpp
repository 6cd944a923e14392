// The device mutants: rows of faults.txt over copies of all caches of cuda/.
#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "properties/devices/mutants/device_mutant.hpp"
#include "properties/seeded/cuda/subjects.hpp"
#include "properties/seeded/devices/far_cells/faults.hpp"
#include "properties/seeded/devices/faults.hpp"
#include "properties/seeding/faulty_subject.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::devices {
namespace {

namespace seeded = cuda::seeded;

// The copy of the kind that a fault names.
Subject copy_of(const seeding::Fault& fault, const OpenDevice& open) {
  const std::string variant = "mutant:" + std::string(fault.name);
  if (fault.kind == "provider.tensor" && fault.profile) return graphed_tensor(variant, open);
  for (const auto& subjects :
       {seeded::provider_subjects, seeded::positional_subjects, seeded::snapshot_subjects})
    for (Subject& subject : subjects(variant, open))
      if (subject.kind->name() == fault.kind) return std::move(subject);
  throw CheckFailed("no such kind");
}

DeviceMutant mutant_of(const seeding::Fault& fault) {
  const auto over = [fault](const OpenDevice& open) {
    Subject subject = copy_of(fault, open);
    subject.doc = fault.fault;
    return seeding::with_fault(std::move(subject), fault);
  };
  return {.name = std::string(fault.name),
          .fault = std::string(fault.fault),
          .origin = std::string(fault.origin),
          .over = over,
          .profile = fault.profile,
          .longest_script = fault.longest_script};
}

}  // namespace

std::vector<DeviceMutant> device_mutants(std::string_view contract) {
  std::vector<DeviceMutant> all;
  for (const seeding::Fault& fault : kFaults)
    if (fault.kind.starts_with(std::string(contract) + ".")) all.push_back(mutant_of(fault));
  return all;
}

DeviceMutant far_mutant(std::string_view kind) {
  const auto* const found = std::ranges::find(far_cells::kFaults, kind, &seeding::Fault::kind);
  KVO_CHECK(found != std::end(far_cells::kFaults));
  return mutant_of(*found);
}

}  // namespace kvo::devices
