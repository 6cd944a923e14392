// cuda/positional/subjects.hpp: caches of contract `positional` with their rows on a device.
#pragma once

#include <string>
#include <vector>

#include "reference/contract/device/device.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo::cuda {

/// One subject a kind that has one; each session opens a device of its own. Variant: "cuda",
/// "cuda-sim".
[[nodiscard]] std::vector<Subject> positional_subjects(const std::string& variant,
                                                       const OpenDevice& open);

}  // namespace kvo::cuda
