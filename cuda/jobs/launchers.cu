// All kernels, in one file: nvcc needs longer to begin than to compile them.
#include <cstdint>
#include <vector>

#include "cuda/jobs/build_mask.hpp"
#include "cuda/jobs/cells.hpp"
#include "cuda/jobs/launchers.hpp"
#include "cuda/jobs/rows.hpp"
#include "reference/contract/device/jobs.hpp"

namespace kvo::cuda {
namespace {

/// Any job: a grid-stride loop around its items. As many blocks must fit as fill a
/// multiprocessor: 32 registers a thread, beyond which some kernels would go else.
template <class Job>
__global__ void __launch_bounds__(kThreads, kBlocksResident) run_job(Job job) {
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

/// A row a unit that in_units can choose.
template <template <class> class Rows>
void add_units(std::vector<Launcher>& table) {
  table.insert(table.end(), {row<Rows<Wide>>(), row<Rows<std::uint32_t>>(),
                             row<Rows<std::uint16_t>>(), row<Rows<std::uint8_t>>()});
}

/// By eight cells an item, unless one of them is a byte, and by one.
template <class To, class From>
void add_conversion(std::vector<Launcher>& table) {
  if constexpr (sizeof(typename To::Cell) > 1 && sizeof(typename From::Cell) > 1)
    table.push_back(row<Convert<To, From, Wide>>());
  table.push_back(row<Convert<To, From, Scalar>>());
}

/// Those of jobs that convert to a storage type or from one.
template <class Format>
void add_format(std::vector<Launcher>& table) {
  table.insert(table.end(),
               {row<PutCells<Format, 4>>(), row<PutCells<Format, 1>>(), row<PutColumns<Format>>(),
                row<RopeShift<Format, 2>>(), row<RopeShift<Format, 1>>(), row<AddShift<Format>>()});
}

std::vector<Launcher> make_table() {
  std::vector<Launcher> table{
      row<OffsetCopyJob>(),
      row<OffsetCopyHalfJob>(),
      row<IncrementJob>(),
      row<ToHalfJob>(),
      row<ToFloatJob>(),
      row<AppendLayers<std::uint32_t>>(),
      row<AppendLayers<std::uint16_t>>(),
      row<BuildMask<std::uint32_t>>(),
      row<BuildMask<std::uint16_t>>(),
  };
  add_units<AppendRows>(table);
  add_units<AppendPaged>(table);
  add_units<GatherPaged>(table);
  add_units<CopyBlocks>(table);
  add_units<PackHeadMajor>(table);
  add_units<RingLinearise>(table);
  add_conversion<HalfCell, FloatCell>(table);
  add_conversion<BrainCell, FloatCell>(table);
  add_conversion<FloatCell, HalfCell>(table);
  add_conversion<BrainCell, HalfCell>(table);
  add_conversion<FloatCell, BrainCell>(table);
  add_conversion<HalfCell, BrainCell>(table);
  add_conversion<E4m3Cell, FloatCell>(table);
  add_conversion<E5m2Cell, FloatCell>(table);
  add_conversion<FloatCell, E4m3Cell>(table);
  add_conversion<FloatCell, E5m2Cell>(table);
  add_format<FloatCell>(table);
  add_format<HalfCell>(table);
  add_format<BrainCell>(table);
  add_format<E4m3Cell>(table);
  add_format<E5m2Cell>(table);
  return table;
}

}  // namespace

std::span<const Launcher> launchers() {
  static const std::vector<Launcher> kTable = make_table();
  return kTable;
}

const Launcher* find_launcher(const JobType& type) {
  for (const Launcher& launcher : launchers())
    if (launcher.type == &type) return &launcher;
  return nullptr;
}

}  // namespace kvo::cuda
