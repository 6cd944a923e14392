#include "properties/seeding/mutants.hpp"

#include <algorithm>
#include <utility>

#include "properties/seeding/faulty_subject.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::seeding {

std::vector<Mutant> mutants_of(std::span<const Fault> faults, const MakeCopies& copies) {
  std::vector<Mutant> mutants;
  for (const Fault& fault : faults) {
    const auto copy = [copies, fault](const std::string& variant, std::string_view doc) {
      std::vector<Subject> subjects = copies(fault.room, variant, std::string(doc));
      const auto of_kind = std::ranges::find(
          subjects, fault.kind, [](const Subject& subject) { return subject.kind->name(); });
      KVO_CHECK(of_kind != subjects.end());
      return std::move(*of_kind);
    };
    mutants.push_back(
        {.subject = with_fault(copy("mutant:" + std::string(fault.name), fault.fault), fault),
         .fault = std::string(fault.fault),
         .origin = std::string(fault.origin),
         .profile = fault.profile,
         .longest_script = fault.longest_script,
         .laws = std::string(fault.laws),
         .sound = [copy, fault] {
           return copy("copy_of_" + std::string(fault.room), "no fault is on");
         }});
  }
  return mutants;
}

}  // namespace kvo::seeding
