// traces/lower_kinds.hpp: the lowering of each cache kind.
#pragma once

#include "traces/lowering.hpp"

namespace kvo::traces {

[[nodiscard]] Lowering layered_lowering();
[[nodiscard]] Lowering contiguous_lowering();
[[nodiscard]] Lowering paged_lowering();
[[nodiscard]] Lowering tensor_lowering();
[[nodiscard]] Lowering device_lowering();
[[nodiscard]] Lowering tracing_lowering();
[[nodiscard]] Lowering causal_lowering();
[[nodiscard]] Lowering swa_lowering();
[[nodiscard]] Lowering swa_mem_lowering();
[[nodiscard]] Lowering chunked_lowering();
[[nodiscard]] Lowering wrapper_lowering();

}  // namespace kvo::traces
