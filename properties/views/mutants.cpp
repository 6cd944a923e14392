#include <string>
#include <vector>

#include "properties/seeded/optimized/views/paged_views_cache.hpp"
#include "properties/seeded/reference/views/paged_cache.hpp"
#include "properties/seeding/faulty_subject.hpp"
#include "properties/views/contract.hpp"
#include "properties/views/faults.hpp"
#include "reference/views/operations.hpp"

namespace kvo::views {

std::vector<Mutant> mutants() {
  std::vector<Mutant> made;
  for (const seeding::Fault& fault : faults()) {
    const bool fast = fault.edits.front().file.starts_with("optimized/");
    Subject subject = make_subject("mutant:" + std::string(fault.name), std::string(fault.fault),
                                   fast ? optimized::seeded::make_paged_views : seeded::make_paged);
    made.push_back({.subject = seeding::with_fault(std::move(subject), fault),
                    .fault = std::string(fault.fault),
                    .origin = std::string(fault.origin),
                    .profile = fault.profile,
                    .longest_script = fault.longest_script});
  }
  return made;
}

std::vector<Subject> sound_copies() {
  return {make_subject("copy_of_reference", "no fault is on", seeded::make_paged),
          make_subject("copy_of_optimized", "no fault is on", optimized::seeded::make_paged_views)};
}

}  // namespace kvo::views
