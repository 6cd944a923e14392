#include "properties/seeding/mutants.hpp"

#include <algorithm>
#include <utility>

#include "properties/seeding/faulty_subject.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::seeding {

std::vector<Mutant> mutants_of(const std::vector<Fault>& faults, const MakeCopies& copies) {
  std::vector<Mutant> mutants;
  for (const Fault& fault : faults) {
    const std::string_view file = fault.edits.front().file;
    std::vector<Subject> subjects =
        copies(file.substr(0, file.find('/')), "mutant:" + std::string(fault.name),
               std::string(fault.fault));
    const auto of_kind = std::ranges::find(
        subjects, fault.kind, [](const Subject& subject) { return subject.kind->name(); });
    KVO_CHECK(of_kind != subjects.end());
    mutants.push_back({.subject = with_fault(std::move(*of_kind), fault),
                       .fault = std::string(fault.fault),
                       .origin = std::string(fault.origin),
                       .profile = fault.profile,
                       .longest_script = fault.longest_script});
  }
  return mutants;
}

std::vector<Subject> sound_copies_of(const std::vector<std::string>& rooms,
                                     const MakeCopies& copies) {
  std::vector<Subject> all;
  for (const std::string& room : rooms)
    for (Subject& copy : copies(room, "copy_of_" + room, "no fault is on"))
      all.push_back(std::move(copy));
  return all;
}

}  // namespace kvo::seeding
