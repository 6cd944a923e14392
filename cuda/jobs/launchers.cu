// All kernels, in one file: nvcc needs longer to begin than to compile them.
#include <cstdint>

#include "cuda/jobs/geometry.hpp"
#include "cuda/jobs/launchers.hpp"
#include "reference/contract/device/jobs.hpp"

namespace kvo::cuda {
namespace {

/// Any job: a grid-stride loop around its items.
template <class Job>
__global__ void run_job(Job job) {
  PlainMemory memory;
  run_thread(job, static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x,
             static_cast<std::int64_t>(gridDim.x) * blockDim.x, memory);
}

template <IsJob T>
cudaError_t launch(const void* data, cudaStream_t stream) {
  const T& job = *static_cast<const T*>(data);
  if (job.items() <= 0) return cudaSuccess;
  const Geometry grid = geometry(job.items());
  run_job<<<grid.blocks, grid.threads, 0, stream>>>(job);
  return cudaGetLastError();
}

template <IsJob T>
Launcher row() {
  return {&kJobType<T>, reinterpret_cast<const void*>(run_job<T>), launch<T>};
}

}  // namespace

std::span<const Launcher> launchers() {
  static const Launcher kTable[] = {
      row<OffsetCopyJob>(), row<OffsetCopyHalfJob>(), row<IncrementJob>(),
      row<ToHalfJob>(),     row<ToFloatJob>(),
  };
  return kTable;
}

const Launcher* find_launcher(const JobType& type) {
  for (const Launcher& launcher : launchers())
    if (launcher.type == &type) return &launcher;
  return nullptr;
}

}  // namespace kvo::cuda
