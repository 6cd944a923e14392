// properties/seeding/mutants.hpp: mutants made of a contract's seeded copies.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "properties/campaign/mutant.hpp"
#include "properties/seeding/fault.hpp"

namespace kvo::seeding {

/// Subjects over seeded copies of what is in `room` ("reference", "optimized"): one of each kind
/// that has faults there.
using MakeCopies = std::function<std::vector<Subject>(
    std::string_view room, const std::string& variant, const std::string& doc)>;

/// One for each fault, in their order.
[[nodiscard]] std::vector<Mutant> mutants_of(const std::vector<Fault>& faults,
                                             const MakeCopies& copies);

/// The copies of these rooms with no fault on: nothing may catch them, or else what catches a
/// mutant need not be its fault.
[[nodiscard]] std::vector<Subject> sound_copies_of(const std::vector<std::string>& rooms,
                                                   const MakeCopies& copies);

}  // namespace kvo::seeding
