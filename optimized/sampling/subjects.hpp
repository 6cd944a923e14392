// optimized/sampling/subjects.hpp: fast samplers of contract `sampling`.
#pragma once

#include <memory>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/sampling/sampler.hpp"

namespace kvo::optimized {

/// One subject a kind that has one.
[[nodiscard]] std::vector<Subject> sampling_subjects();

/// The sampler of these subjects, for whoever drives one.
[[nodiscard]] std::unique_ptr<sampling::Sampler> make_selecting_sampler(
    QuirkSet<sampling::Quirk> quirks);

}  // namespace kvo::optimized
