// traces/lower_kinds.hpp: the lowering of each cache kind, one file each.
#pragma once

#include "traces/lowering.hpp"

namespace kvo::traces {

[[nodiscard]] Lowering layered_lowering();
[[nodiscard]] Lowering contiguous_lowering();
[[nodiscard]] Lowering paged_lowering();
[[nodiscard]] Lowering tensor_lowering();
[[nodiscard]] Lowering device_lowering();
[[nodiscard]] Lowering tracing_lowering();

}  // namespace kvo::traces
