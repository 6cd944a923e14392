#include "cuda/device/cuda_device.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <cuda_runtime_api.h>

#include "cuda/device/open.hpp"
#include "cuda/jobs/launchers.hpp"

namespace kvo::cuda {
namespace {

// What the kernels are compiled for at least (cmake/KvoCuda.cmake).
constexpr int kOldest = 8;

Error bad_pointer() {
  return fail_other("bad_pointer");
}

Error error_of(cudaError_t code) {
  const std::string words = cudaGetErrorName(code);
  switch (code) {
    case cudaErrorMemoryAllocation:
      return {.reason = "alloc_failed", .detail = words};
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
      return {.reason = "bad_pointer", .detail = words};
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return fail(Code::kNotSupported, words);
    default:
      return {.reason = "device_lost", .detail = words};
  }
}

Status status(cudaError_t code) {
  if (code == cudaSuccess) return {};
  (void)cudaGetLastError();  // it is told here and not by a later launch
  return error_of(code);
}

void* pointer(DevicePtr ptr) {
  return ptr.as<void>();
}

struct Card {
  std::string name;
  int major = 0;
  int minor = 0;
};

Result<Card> first_card() {
  int count = 0;
  const cudaError_t asked = cudaGetDeviceCount(&count);
  if (asked != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    return fail(Code::kNotSupported,
                std::string("no CUDA device: ") +
                    (asked == cudaSuccess ? "the count is 0" : cudaGetErrorString(asked)));
  }
  cudaDeviceProp properties = {};
  if (Status done = status(cudaGetDeviceProperties(&properties, 0)); !done) return done.error();
  Card card{properties.name, properties.major, properties.minor};
  if (card.major < kOldest) {
    return fail(Code::kNotSupported, card.name + " has compute capability " +
                                         std::to_string(card.major) + "." +
                                         std::to_string(card.minor) + "; 8.0 is needed");
  }
  return card;
}

}  // namespace

Result<std::shared_ptr<Device>> open_device() {
  auto device = CudaDevice::open();
  if (!device) return device.error();
  return std::shared_ptr<Device>(std::move(*device));
}

Result<std::string> card_name() {
  const auto card = first_card();
  if (!card) return card.error();
  return card->name + ", compute capability " + std::to_string(card->major) + "." +
         std::to_string(card->minor);
}

Result<std::shared_ptr<CudaDevice>> CudaDevice::open() {
  if (const auto card = first_card(); !card) return card.error();
  auto device = std::make_shared<CudaDevice>();
  if (Status done = device->prepare(); !done) return done.error();
  return device;
}

Status CudaDevice::prepare() {
  if (Status done = status(cudaSetDevice(0)); !done) return done;
  if (Status done = status(cudaStreamCreateWithFlags(&zeroing_, cudaStreamNonBlocking)); !done)
    return done;
  return status(cudaStreamCreateWithFlags(&streams_[Stream().id], cudaStreamNonBlocking));
}

// Errors cannot be told any more.
CudaDevice::~CudaDevice() {
  for (const auto& [id, stream] : streams_) (void)cudaStreamSynchronize(stream);
  for (const auto& [id, graph] : graphs_) (void)cudaGraphExecDestroy(graph);
  for (const auto& [id, event] : events_) (void)cudaEventDestroy(event);
  for (const auto& [address, bytes] : buffers_) (void)cudaFree(pointer({address}));
  for (const auto& [id, stream] : streams_) (void)cudaStreamDestroy(stream);
  if (zeroing_ != nullptr) (void)cudaStreamDestroy(zeroing_);
}

// ---- memory ----

Result<DevicePtr> CudaDevice::alloc(std::int64_t bytes) {
  if (bytes < 0) return fail_other("alloc_failed");
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  void* made = nullptr;
  if (Status done = status(cudaMalloc(&made, size)); !done) return done.error();
  Status zeroed = status(cudaMemsetAsync(made, 0, size, zeroing_));
  if (zeroed) zeroed = status(cudaStreamSynchronize(zeroing_));
  if (!zeroed) {
    (void)cudaFree(made);
    return zeroed.error();
  }
  const DevicePtr ptr{reinterpret_cast<std::uint64_t>(made)};
  buffers_.emplace(ptr.address, bytes);
  return ptr;
}

Status CudaDevice::free(DevicePtr ptr) {
  const auto found = buffers_.find(ptr.address);
  if (found == buffers_.end()) return bad_pointer();
  if (Status done = status(cudaFree(pointer(ptr))); !done) return done;
  buffers_.erase(found);
  return {};
}

bool CudaDevice::inside(DevicePtr ptr, std::int64_t bytes) const {
  auto found = buffers_.upper_bound(ptr.address);
  if (found == buffers_.begin() || bytes < 0) return false;
  --found;
  const auto offset = static_cast<std::int64_t>(ptr.address - found->first);
  return offset >= 0 && offset <= found->second && bytes <= found->second - offset;
}

// ---- queueing ----

Status CudaDevice::begin(const Work& work, Stream stream) {
  if (Status found = table_.known(stream); !found) return found;
  if (work.job && !work.job->points_to([&](DevicePtr ptr) { return inside(ptr, 0); }))
    return bad_pointer();
  const bool writes = !work.job && work.kind != Work::Kind::kToHost;
  const bool reads = work.kind == Work::Kind::kToHost || work.kind == Work::Kind::kCopy;
  if (writes && !inside(work.dst, work.bytes)) return bad_pointer();
  if (reads && !inside(work.src, work.bytes)) return bad_pointer();
  const auto told = table_.captured(work, stream);
  return told ? Status() : Status(told.error());
}

Status CudaDevice::to_device_async(DevicePtr dst, std::span<const std::byte> src, Stream stream) {
  if (Status begun = begin(Work::to_device(dst, src), stream); !begun) return begun;
  if (src.empty()) return {};
  return status(cudaMemcpyAsync(pointer(dst), src.data(), src.size(), cudaMemcpyHostToDevice,
                                streams_.at(stream.id)));
}

Status CudaDevice::to_host_async(std::span<std::byte> dst, DevicePtr src, Stream stream) {
  if (Status begun = begin(Work::to_host(dst, src), stream); !begun) return begun;
  if (dst.empty()) return {};
  return status(cudaMemcpyAsync(dst.data(), pointer(src), dst.size(), cudaMemcpyDeviceToHost,
                                streams_.at(stream.id)));
}

Status CudaDevice::copy_async(DevicePtr dst, DevicePtr src, std::int64_t bytes, Stream stream) {
  if (Status begun = begin(Work::copy(dst, src, bytes), stream); !begun) return begun;
  if (bytes == 0) return {};
  return status(cudaMemcpyAsync(pointer(dst), pointer(src), static_cast<std::size_t>(bytes),
                                cudaMemcpyDeviceToDevice, streams_.at(stream.id)));
}

Status CudaDevice::fill_async(DevicePtr dst, std::byte value, std::int64_t bytes, Stream stream) {
  if (Status begun = begin(Work::fill(dst, value, bytes), stream); !begun) return begun;
  if (bytes == 0) return {};
  return status(cudaMemsetAsync(pointer(dst), std::to_integer<int>(value),
                                static_cast<std::size_t>(bytes), streams_.at(stream.id)));
}

Status CudaDevice::launch(const Job& job, Stream stream) {
  const Launcher* const launcher = find_launcher(job.type());
  if (launcher == nullptr)
    return fail(Code::kNotSupported, "no kernel of " + std::string(job.type().name));
  if (Status begun = begin(Work::launch(job), stream); !begun) return begun;
  return status(launcher->launch(job.data(), streams_.at(stream.id)));
}

// ---- streams and events ----

Result<Stream> CudaDevice::create_stream() {
  cudaStream_t made = nullptr;
  if (Status done = status(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking)); !done)
    return done.error();
  const Stream stream = table_.add_stream();
  streams_.emplace(stream.id, made);
  return stream;
}

Status CudaDevice::destroy(Stream stream) {
  if (Status removed = table_.remove(stream); !removed) return removed;
  auto* const handle = streams_.extract(stream.id).mapped();
  const Status waited = status(cudaStreamSynchronize(handle));
  const Status destroyed = status(cudaStreamDestroy(handle));
  return waited ? destroyed : waited;
}

Result<Event> CudaDevice::create_event() {
  cudaEvent_t made = nullptr;
  if (Status done = status(cudaEventCreateWithFlags(&made, cudaEventDisableTiming)); !done)
    return done.error();
  const Event event = table_.add_event();
  events_.emplace(event.id, made);
  return event;
}

Status CudaDevice::destroy(Event event) {
  if (Status removed = table_.remove(event); !removed) return removed;
  return status(cudaEventDestroy(events_.extract(event.id).mapped()));
}

Status CudaDevice::record(Event event, Stream stream) {
  const auto told = table_.captured_record(event, stream);
  if (!told) return told.error();
  return status(cudaEventRecord(events_.at(event.id), streams_.at(stream.id)));
}

Status CudaDevice::wait(Stream stream, Event event) {
  const auto told = table_.captured_wait(stream, event);
  if (!told) return told.error();
  if (!table_.stands(event)) return {};  // past; the runtime would refuse one of an ended capture
  return status(cudaStreamWaitEvent(streams_.at(stream.id), events_.at(event.id), 0));
}

Status CudaDevice::synchronize(Stream stream) {
  if (Status free = table_.waitable(stream); !free) return free;
  return status(cudaStreamSynchronize(streams_.at(stream.id)));
}

Status CudaDevice::synchronize(Event event) {
  if (Status free = table_.waitable(event); !free) return free;
  if (!table_.stands(event)) return {};
  return status(cudaEventSynchronize(events_.at(event.id)));
}

// ---- graphs ----

Status CudaDevice::begin_capture(Stream stream) {
  if (Status begun = table_.begin_capture(stream); !begun) return begun;
  // Relaxed: alloc and free of the same thread are no part of a capture and do not end it.
  Status begun =
      status(cudaStreamBeginCapture(streams_.at(stream.id), cudaStreamCaptureModeRelaxed));
  if (!begun) (void)table_.end_capture(stream);
  return begun;
}

Result<Graph> CudaDevice::end_capture(Stream stream) {
  if (Status found = table_.known(stream); !found) return found.error();
  if (!table_.capture() || table_.capture()->origin() != stream) return fail_other("bad_capture");
  const auto joined = table_.end_capture(stream);
  cudaGraph_t captured = nullptr;
  const Status ended = status(cudaStreamEndCapture(streams_.at(stream.id), &captured));
  cudaGraphExec_t made = nullptr;
  Status built = joined ? ended : Status(joined.error());
  if (built) built = status(cudaGraphInstantiate(&made, captured, 0));
  if (captured != nullptr) (void)cudaGraphDestroy(captured);
  if (!built) return built.error();
  graphs_.emplace(next_graph_, made);
  return Graph{next_graph_++};
}

Status CudaDevice::replay(Graph graph, Stream stream) {
  const auto found = graphs_.find(graph.id);
  if (found == graphs_.end()) return fail_other("bad_graph");
  if (Status free = table_.waitable(stream); !free) return free;
  return status(cudaGraphLaunch(found->second, streams_.at(stream.id)));
}

Status CudaDevice::destroy(Graph graph) {
  const auto found = graphs_.extract(graph.id);
  if (found.empty()) return fail_other("bad_graph");
  return status(cudaGraphExecDestroy(found.mapped()));
}

}  // namespace kvo::cuda
