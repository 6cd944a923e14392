// How kernels get from nvcc's objects to the simulated device.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <cxxabi.h>

#include "cuda/jobs/launchers.hpp"
#include "cuda/standin/card.hpp"

namespace kvo::cuda {
namespace {

cudaError_t& last_error() {
  static cudaError_t error = cudaSuccess;
  return error;
}

/// The kernels that the objects of this program have registered.
std::map<const void*, std::string>& kernels() {
  static std::map<const void*, std::string> names;
  return names;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? std::string(text.get()) : std::string(name);
}

/// What stands between <<< and >>>, until the launch takes it.
struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared = 0;
  void* stream = nullptr;
};
std::vector<Configuration>& configurations() {
  static std::vector<Configuration> stack;
  return stack;
}

// The limits of every card since compute capability 3.0.
bool launchable(const dim3& grid, const dim3& block) {
  constexpr unsigned kMostThreads = 1024;
  constexpr unsigned kMostBlocks = 0x7FFFFFFFU;
  return grid.x >= 1 && grid.x <= kMostBlocks && block.x >= 1 && block.x <= kMostThreads;
}

bool of_one_dimension(const dim3& size) {
  return size.y == 1 && size.z == 1;
}

}  // namespace

cudaError_t remember(cudaError_t code) {
  if (code != cudaSuccess) last_error() = code;
  return code;
}

cudaError_t take_last_error() {
  return std::exchange(last_error(), cudaSuccess);
}

cudaError_t launch_kernel(const void* kernel, const dim3& grid, const dim3& block, void** arguments,
                          cudaStream_t stream) {
  Card* const card = Card::current();
  if (card == nullptr) return remember(cudaErrorNoDevice);
  const auto registered = kernels().find(kernel);
  const Launcher* found = nullptr;
  for (const Launcher& launcher : launchers())
    if (launcher.kernel == kernel) found = &launcher;
  if (registered == kernels().end() || found == nullptr)
    return remember(cudaErrorInvalidDeviceFunction);
  if (card->options().no_kernel_image) return remember(cudaErrorNoKernelImageForDevice);
  if (!launchable(grid, block)) return remember(cudaErrorInvalidConfiguration);
  if (!of_one_dimension(grid) || !of_one_dimension(block)) return remember(cudaErrorNotSupported);
  const std::int64_t threads = std::int64_t{grid.x} * block.x;
  ++launch_counts().kernels[registered->second];
  launch_counts().threads += threads;
  return on_card([&](SimulatedDevice& device) {
    return device.queue(
        {.kind = Work::Kind::kJob, .job = Job(*found->type, arguments[0]), .threads = threads},
        {number_of(stream)});
  });
}

}  // namespace kvo::cuda

namespace standin = kvo::cuda;

// What nvcc's objects call; its headers declare some of these for its own compiler only.
// NOLINTBEGIN(*-reserved-identifier,*-identifier-naming,*-function-size): the names and parameters
// are the runtime's.
extern "C" {

void** __cudaRegisterFatBinary(void* /*binary*/) {
  static void* handle = nullptr;
  return &handle;
}

void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

void __cudaUnregisterFatBinary(void** /*handle*/) {}

void __cudaRegisterFunction(void** /*handle*/, const char* stub, char* /*function*/,
                            const char* name, int /*limit*/, uint3* /*thread*/, uint3* /*block*/,
                            dim3* /*block_size*/, dim3* /*grid_size*/, int* /*warp_size*/) {
  standin::kernels()[stub] = standin::demangled(name);
}

char __cudaInitModule(void** /*handle*/) {
  return 0;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, void* stream) {
  standin::configurations().push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  if (standin::configurations().empty()) return cudaErrorInvalidConfiguration;
  const auto top = standin::configurations().back();
  standin::configurations().pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<void**>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = standin::handle_of<cudaKernel_t>(standin::number_of(stub));
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t /*shared*/, cudaStream_t stream) {
  return standin::launch_kernel(kernel, grid, block, arguments, stream);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t /*shared*/, cudaStream_t stream) {
  return standin::launch_kernel(kernel, grid, block, arguments, stream);
}

}  // extern "C"
// NOLINTEND(*-reserved-identifier,*-identifier-naming,*-function-size)
