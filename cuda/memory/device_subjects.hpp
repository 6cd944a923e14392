// cuda/memory/device_subjects.hpp: subjects whose sessions keep their rows on a device.
#pragma once

#include <functional>
#include <memory>

#include "reference/contract/device/device.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo::cuda {

/// The subject that `over` makes of a device; each session opens one of its own. `over` is called
/// with null for the subject's name, too.
/// Errors of a session's opening  as of OpenDevice.
[[nodiscard]] Subject subject_over(std::function<Subject(std::shared_ptr<Device>)> over,
                                   OpenDevice open);

}  // namespace kvo::cuda
