// properties/provider/lowering.hpp: how requests become operations of contract `provider`.
#pragma once

#include "properties/replay/lowering.hpp"

namespace kvo::provider {

/// Of `provider.contiguous`, `.paged`, `.tensor`, `.device` and `.tracing`.
[[nodiscard]] replay::Lowering contiguous_lowering();
[[nodiscard]] replay::Lowering paged_lowering();
[[nodiscard]] replay::Lowering tensor_lowering();
[[nodiscard]] replay::Lowering device_lowering();
[[nodiscard]] replay::Lowering tracing_lowering();

}  // namespace kvo::provider
