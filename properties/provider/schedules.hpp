// properties/provider/schedules.hpp: the device caches over devices that draw schedules.
#pragma once

#include <cstdint>
#include <functional>

#include "reference/contract/device/simulated/watched_subject.hpp"

namespace kvo::provider {

/// Opens the device of a schedule.
using OpenScheduled = std::function<Result<WatchedDevice>(std::uint64_t seed)>;

/// Plays random scripts of provider.device and provider.tensor, in both profiles, over a device of
/// each of `schedules` seeds, beside the references over HostDevice: expects the same observations
/// and no report. What is wrong fails the GoogleTest test that calls it.
void expect_schedules_to_agree(const OpenScheduled& open, std::uint64_t schedules);

}  // namespace kvo::provider
