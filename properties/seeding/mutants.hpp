// properties/seeding/mutants.hpp: mutants made of a contract's seeded copies.
#pragma once

#include <functional>
#include <span>
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
[[nodiscard]] std::vector<Mutant> mutants_of(std::span<const Fault> faults,
                                             const MakeCopies& copies);

}  // namespace kvo::seeding
