// cuda/jobs/launch.cuh: the one kernel: a grid-stride loop around a job.
#pragma once

#include <cstdint>

#include "reference/contract/device/jobs.hpp"

namespace kvo::cuda {

template <class Job>
__global__ void run_kernel(Job job) {
  PlainMemory memory;
  run_thread(job, static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x,
             static_cast<std::int64_t>(gridDim.x) * blockDim.x, memory);
}

/// Queues a job on a stream. Errors are CUDA's, of the launch itself.
template <class Job>
cudaError_t launch(const Job& job, cudaStream_t stream) {
  constexpr std::int64_t kThreads = 256;
  constexpr std::int64_t kMostBlocks = 4096;
  const std::int64_t wanted = (job.items() + kThreads - 1) / kThreads;
  const std::int64_t blocks = wanted < 1 ? 1 : (wanted < kMostBlocks ? wanted : kMostBlocks);
  run_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

}  // namespace kvo::cuda
