// cuda/positional/causal_device_cache.hpp: the causal caches of `positional` on a device.
#pragma once

#include <memory>

#include "reference/contract/device/device.hpp"
#include "reference/positional/cache.hpp"

namespace kvo::cuda {

/// All four causal caches (OK-7): the bookkeeping of those for a CPU, over memory of a device.
/// Errors  kPrecondition: window or memory below 0; kNotSupported: a shift function that does not
///         tell what it does.
[[nodiscard]] Result<std::unique_ptr<positional::Cache>> make_causal_device_cache(
    const std::shared_ptr<Device>& device, const positional::CacheOptions& options);

}  // namespace kvo::cuda
