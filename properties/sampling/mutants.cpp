#include <algorithm>
#include <memory>
#include <string>

#include "properties/sampling/contract.hpp"
#include "properties/sampling/faults.hpp"
#include "properties/seeded/optimized/sampling/selecting_sampler.hpp"
#include "properties/seeded/reference/sampling/pipeline.hpp"
#include "properties/seeding/faulty_subject.hpp"
#include "reference/sampling/operations.hpp"

namespace kvo::sampling {
namespace {

std::unique_ptr<Sampler> make_selecting_copy(QuirkSet<Quirk> quirks) {
  return std::make_unique<optimized::seeded::SelectingSampler>(quirks);
}

bool is_in_optimized(const seeding::Fault& fault) {
  return std::ranges::any_of(
      fault.edits, [](const seeding::Edit& edit) { return edit.file.starts_with("optimized/"); });
}

}  // namespace

std::vector<Mutant> mutants() {
  std::vector<Mutant> made;
  for (const seeding::Fault& fault : faults()) {
    const Subject copy =
        make_subject("mutant:" + std::string(fault.name), std::string(fault.fault),
                     is_in_optimized(fault) ? make_selecting_copy : seeded::make_pipeline);
    made.push_back({.subject = seeding::with_fault(copy, fault),
                    .fault = std::string(fault.fault),
                    .origin = std::string(fault.origin),
                    .profile = fault.profile,
                    .longest_script = fault.longest_script});
  }
  return made;
}

std::vector<Subject> sound_copies() {
  return {make_subject("copy_of_reference", "no fault is on", seeded::make_pipeline),
          make_subject("copy_of_optimized", "no fault is on", make_selecting_copy)};
}

}  // namespace kvo::sampling
