// The device mutants of contract `snapshot`: a table of faults over seeded copies.
#include <algorithm>
#include <memory>
#include <string>

#include "cuda/subjects.hpp"
#include "optimized/snapshot/row_caches.hpp"
#include "properties/devices/mutants/device_mutant.hpp"
#include "properties/seeded/cuda/snapshot/device_slots.hpp"
#include "properties/seeded/devices/snapshot_devices/faults.hpp"
#include "properties/seeding/faulty_subject.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/snapshot/operations.hpp"

namespace kvo::devices {
namespace {

// The subject of a kind whose caches are seeded copies.
Subject seeded_copy(const seeding::Fault& fault, const std::shared_ptr<Device>& device) {
  const std::vector<Subject> all =
      snapshot::make_subjects("mutant:" + std::string(fault.name), std::string(fault.fault),
                              optimized::caches_over<cuda::seeded::DeviceSides>(device));
  const auto found = std::ranges::find(all, fault.kind,
                                       [](const Subject& subject) { return subject.kind->name(); });
  KVO_CHECK(found != all.end());
  return *found;
}

}  // namespace

std::vector<DeviceMutant> snapshot_device_mutants() {
  std::vector<DeviceMutant> all;
  for (const seeding::Fault& fault : snapshot_devices::kFaults) {
    const auto over = [fault](const OpenDevice& open) {
      const auto copy = [fault](const std::shared_ptr<Device>& device) {
        return seeded_copy(fault, device);
      };
      return seeding::with_fault(cuda::subject_over(copy, open), fault);
    };
    all.push_back({.name = std::string(fault.name),
                   .fault = std::string(fault.fault),
                   .origin = std::string(fault.origin),
                   .over = over,
                   .profile = fault.profile,
                   .longest_script = fault.longest_script});
  }
  return all;
}

}  // namespace kvo::devices
