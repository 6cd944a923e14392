// cuda/device/open.hpp: the card of this machine, whatever the build has of CUDA.
#pragma once

#include <memory>
#include <string>

#include "reference/contract/device/device.hpp"

namespace kvo::cuda {

/// The first card, with queues of its own and no memory allocated.
/// Errors  kNotSupported: built without CUDA, no card, or one that the kernels are not compiled
/// for.
[[nodiscard]] Result<std::shared_ptr<Device>> open_device();

/// For people: "NVIDIA H100, compute capability 9.0". Errors as of open_device.
[[nodiscard]] Result<std::string> card_name();

}  // namespace kvo::cuda
