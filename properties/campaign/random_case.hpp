// properties/campaign/random_case.hpp: the index-th random case of a campaign.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "properties/campaign/contracts.hpp"
#include "properties/runner/run_case.hpp"

namespace kvo {

/// A case of `law` for `subjects` of one kind, drawn from (seed, index). Its baseline is the kind's
/// reference, which is also judged where the law is about more than agreeing with it.
/// Requires  the kind has a generator.
[[nodiscard]] CasePlan random_case(const Contracts& contracts, const Law& law,
                                   const std::vector<const Subject*>& subjects, std::uint64_t seed,
                                   std::uint64_t index, Profile profile);

/// The labels of a kind that `reached` lacks.
[[nodiscard]] std::vector<std::string_view> missing_labels(const Generator& generator,
                                                           Profile profile, const Labels& reached);

}  // namespace kvo
