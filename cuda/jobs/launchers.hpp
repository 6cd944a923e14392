// cuda/jobs/launchers.hpp: the kernel of each job.
//
// A job gets a kernel by a row in launchers.cu.
#pragma once

#include <span>

#include <cuda_runtime_api.h>

#include "reference/contract/device/job.hpp"

namespace kvo::cuda {

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
