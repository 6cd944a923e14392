// cuda/jobs/launchers.hpp: the kernel of each job.
//
// A job gets a kernel by a row in launchers.cu.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <cuda_runtime_api.h>

#include "reference/contract/device/job.hpp"

namespace kvo::cuda {

/// A grid of one dimension; each thread does each (blocks * threads)-th item.
struct Geometry {
  unsigned blocks = 0;
  unsigned threads = 0;  ///< of a block
};

/// Eight blocks of 256 threads fill a multiprocessor (2048 threads) at up to 32 registers a thread.
inline constexpr std::int64_t kThreads = 256;
inline constexpr std::int64_t kBlocksResident = 8;
/// What the 132 multiprocessors of an H100 hold at a time; beyond it threads take more items each.
inline constexpr std::int64_t kMostBlocks = kBlocksResident * 132;

/// At least one block. Requires items >= 1.
[[nodiscard]] constexpr Geometry geometry(std::int64_t items) {
  const std::int64_t wanted = (items - 1) / kThreads + 1;
  return {static_cast<unsigned>(std::min(wanted, kMostBlocks)), static_cast<unsigned>(kThreads)};
}

struct Launcher {
  const JobType* type;
  const void* kernel;  ///< what the runtime knows it by
  /// Queues the job on the stream; one without items is none. Errors are those of the launch.
  cudaError_t (*launch)(const void* job, cudaStream_t stream);
};

[[nodiscard]] std::span<const Launcher> launchers();
/// Null: there is no kernel of that job.
[[nodiscard]] const Launcher* find_launcher(const JobType& type);

}  // namespace kvo::cuda
