// properties/seeding/faulty_subject.hpp: subjects whose caches are seeded copies.
#pragma once

#include "properties/seeding/fault.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo::seeding {

/// `subject`, whose caches are seeded copies, with a fault on in everything that its sessions do:
/// they may live side by side with those of other faults, and in any thread.
[[nodiscard]] Subject with_fault(Subject subject, const Fault& fault);

}  // namespace kvo::seeding
