// cuda/subjects.hpp: the caches of each contract that store their rows on a device.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reference/contract/device/device.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo::cuda {

/// The subject that `over` makes of a device. Each session opens a device of its own. `over` is
/// also called with null, for the name of the subject.
/// Errors of opening a session  as of OpenDevice.
[[nodiscard]] Subject subject_over(std::function<Subject(std::shared_ptr<Device>)> over,
                                   OpenDevice open);

/// One subject for each kind that has a cache on a device. `variant` is "cuda" or "cuda-sim". @{
[[nodiscard]] std::vector<Subject> layered_subjects(const std::string& variant,
                                                    const OpenDevice& open);
[[nodiscard]] std::vector<Subject> provider_subjects(const std::string& variant,
                                                     const OpenDevice& open);
[[nodiscard]] std::vector<Subject> positional_subjects(const std::string& variant,
                                                       const OpenDevice& open);
[[nodiscard]] std::vector<Subject> snapshot_subjects(const std::string& variant,
                                                     const OpenDevice& open);
[[nodiscard]] std::vector<Subject> views_subjects(const std::string& variant,
                                                  const OpenDevice& open);
/// @}

}  // namespace kvo::cuda
