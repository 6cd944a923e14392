#include "cuda/device/cuda_device.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <cuda_runtime_api.h>

#include "cuda/device/open.hpp"
#include "cuda/jobs/launchers.hpp"
#include "reference/contract/subject/probe.hpp"
#include "reference/contract/values/check.hpp"

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
  (void)cudaGetLastError();  // reported here and not by a later launch
  return error_of(code);
}

void* pointer(DevicePtr ptr) {
  return ptr.as<void>();
}

/// Stores what `make` makes under its number.
template <class Handle, class Make>
Status made(std::map<std::uint64_t, Handle*>& handles, std::uint64_t number, const Make& make) {
  Handle* handle = nullptr;
  Status done = status(make(&handle));
  if (done) handles.emplace(number, handle);
  return done;
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

// A destructor returns no error.
CudaDevice::~CudaDevice() {
  for (const auto& [id, stream] : streams_) (void)cudaStreamSynchronize(stream);
  for (const auto& [id, graph] : graphs_) (void)cudaGraphExecDestroy(graph);
  for (const auto& [id, event] : events_) (void)cudaEventDestroy(event);
  for (const auto& [address, bytes] : buffers_) (void)cudaFree(pointer({address}));
  for (const auto& [id, stream] : streams_) (void)cudaStreamDestroy(stream);
  if (zeroing_ != nullptr) (void)cudaStreamDestroy(zeroing_);
}

// What the table of buffers, streams and events allocates is not the cache's to run out of.

// ---- memory ----

Result<DevicePtr> CudaDevice::alloc(std::int64_t bytes) {
  const HarnessWork ours;
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
  const HarnessWork ours;
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

Status CudaDevice::queue(const Work& work, Stream stream) {
  const HarnessWork ours;
  const Launcher* launcher = nullptr;
  if (work.job) {
    launcher = find_launcher(work.job->type());
    if (launcher == nullptr)
      return fail(Code::kNotSupported, "no kernel of " + std::string(work.name()));
  }
  if (Status found = table_.known(stream); !found) return found;
  if (!work.inside([&](DevicePtr ptr, std::int64_t bytes) { return inside(ptr, bytes); }))
    return bad_pointer();
  if (const auto captured = table_.captured(work, stream); !captured) return captured.error();
  const auto bytes = work.bytes;
  if (!work.job && bytes == 0) return {};
  switch (work.kind) {
    case Work::Kind::kToDevice:
      return status(cudaMemcpyAsync(pointer(work.dst), work.host_src,
                                    static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice,
                                    streams_.at(stream.id)));
    case Work::Kind::kToHost:
      return status(cudaMemcpyAsync(work.host_dst, pointer(work.src),
                                    static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost,
                                    streams_.at(stream.id)));
    case Work::Kind::kCopy:
      return status(cudaMemcpyAsync(pointer(work.dst), pointer(work.src),
                                    static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                                    streams_.at(stream.id)));
    case Work::Kind::kFill:
      return status(cudaMemsetAsync(pointer(work.dst), std::to_integer<int>(work.value),
                                    static_cast<std::size_t>(bytes), streams_.at(stream.id)));
    case Work::Kind::kJob:
      return status(launcher->launch(work.job->data(), streams_.at(stream.id)));
  }
  KVO_CHECK(false);
}

// ---- streams, events and graphs ----

Result<std::uint64_t> CudaDevice::control(const StreamCall& call) {
  const HarnessWork ours;
  const bool ends = call.kind == Call::kEndCapture && table_.capture() &&
                    table_.capture()->origin() == call.stream;
  auto number = table_.control(call);
  if (!number && ends) (void)end_capture(call.stream, 0);
  if (!number) return number;
  Status done = carry_out(call, *number);
  if (done) return number;
  // What the runtime does not have, the table does not have either.
  if (call.kind == Call::kCreateStream)
    (void)table_.control({.kind = Call::kDestroyStream, .stream = {*number}});
  if (call.kind == Call::kCreateEvent)
    (void)table_.control({.kind = Call::kDestroyEvent, .event = {*number}});
  if (call.kind == Call::kBeginCapture)
    (void)table_.control({.kind = Call::kEndCapture, .stream = call.stream});
  if (call.kind == Call::kEndCapture)
    (void)table_.control({.kind = Call::kDestroyGraph, .graph = {*number}});
  return done.error();
}

Status CudaDevice::carry_out(const StreamCall& call, std::uint64_t number) {
  const auto& [kind, stream, event, graph] = call;
  switch (kind) {
    case Call::kCreateStream:
      return made(streams_, number, [](CUstream_st** out) {
        return cudaStreamCreateWithFlags(out, cudaStreamNonBlocking);
      });
    case Call::kDestroyStream: {
      auto* const handle = streams_.extract(stream.id).mapped();
      const Status waited = status(cudaStreamSynchronize(handle));
      const Status destroyed = status(cudaStreamDestroy(handle));
      return waited ? destroyed : waited;
    }
    case Call::kCreateEvent:
      return made(events_, number, [](CUevent_st** out) {
        return cudaEventCreateWithFlags(out, cudaEventDisableTiming);
      });
    case Call::kDestroyEvent:
      return status(cudaEventDestroy(events_.extract(event.id).mapped()));
    case Call::kRecord:
      return status(cudaEventRecord(events_.at(event.id), streams_.at(stream.id)));
    case Call::kWait:
      // Past; the runtime would refuse an event of an ended capture.
      if (!table_.recorded(event)) return {};
      return status(cudaStreamWaitEvent(streams_.at(stream.id), events_.at(event.id), 0));
    case Call::kSynchronizeStream:
      return status(cudaStreamSynchronize(streams_.at(stream.id)));
    case Call::kSynchronizeEvent:
      if (!table_.recorded(event)) return {};
      return status(cudaEventSynchronize(events_.at(event.id)));
    case Call::kBeginCapture:
      // Relaxed: alloc and free of the same thread are no part of a capture and do not end it.
      return status(cudaStreamBeginCapture(streams_.at(stream.id), cudaStreamCaptureModeRelaxed));
    case Call::kEndCapture:
      return end_capture(stream, number);
    case Call::kReplay:
      return status(cudaGraphLaunch(graphs_.at(graph.id), streams_.at(stream.id)));
    case Call::kDestroyGraph:
      return status(cudaGraphExecDestroy(graphs_.extract(graph.id).mapped()));
  }
  KVO_CHECK(false);
}

Status CudaDevice::end_capture(Stream stream, std::uint64_t graph) {
  cudaGraph_t captured = nullptr;
  Status built = status(cudaStreamEndCapture(streams_.at(stream.id), &captured));
  if (built && graph != 0)
    built = made(graphs_, graph,
                 [&](CUgraphExec_st** out) { return cudaGraphInstantiate(out, captured, 0); });
  if (captured != nullptr) (void)cudaGraphDestroy(captured);
  return built;
}

}  // namespace kvo::cuda
