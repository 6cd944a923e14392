// properties/campaign/random_case.hpp: the index-th random case of a campaign.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "properties/campaign/contracts.hpp"
#include "properties/runner/run_case.hpp"

namespace kvo {

/// The scale of the nth case of a kind under a law, from 0. Large ones come early and regularly. Of
/// long ones the first comes early, the others are rare, and only where a law judges each operation
/// once: so a campaign of any length has its share of each.
[[nodiscard]] Scale scale_of(const Law& law, std::uint64_t nth);

/// A case of `law` for `subjects` of one kind, drawn from (seed, index, scale). Its baseline is the
/// kind's reference, which is also judged where the law is about more than agreeing with it.
/// Subjects that the law does not concern, or that refuse the setup, take no part. If all of them
/// but the reference refuse it, the case is drawn again, up to 100 times: the draw is still a
/// function of (seed, index, scale) for any subjects among which one accepts it.
/// Operations that the conventions of all these subjects accept although the rules refuse them are
/// not drawn. Requires  the kind has a generator.
[[nodiscard]] CasePlan random_case(const Contracts& contracts, const Law& law,
                                   const std::vector<const Subject*>& subjects, std::uint64_t seed,
                                   std::uint64_t index, Profile profile,
                                   Scale scale = Scale::kSmall);

/// What all subjects but the reference carry out although the rules refuse it; null: nothing.
[[nodiscard]] DrawnOps::Outside outside_of(std::vector<const Subject*> judged,
                                           const Subject* reference);

/// The labels of a kind that `reached` lacks.
[[nodiscard]] std::vector<std::string_view> missing_labels(const Generator& generator,
                                                           Profile profile, const Labels& reached);

}  // namespace kvo
