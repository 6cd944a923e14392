// The card that lives; memory, streams, events and graphs of the CUDA runtime over it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include <cuda_runtime_api.h>

#include "cuda/standin/card.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::cuda {
namespace {

Card*& the_card() {
  static Card* card = nullptr;
  return card;
}

}  // namespace

Card::Card(CardOptions options)
    : options_(std::move(options)), device_(std::move(options_.device)) {
  KVO_CHECK(the_card() == nullptr);
  the_card() = this;
  ++launch_counts().cards;
  (void)take_last_error();  // a program has a runtime of its own
}

Card::~Card() {
  the_card() = nullptr;
}

Card* Card::current() {
  return the_card();
}

LaunchCounts& launch_counts() {
  static LaunchCounts counts;
  return counts;
}

namespace {

DevicePtr device_ptr(const void* pointer) {
  return {reinterpret_cast<std::uint64_t>(pointer)};
}

// How often each graph is held: as captured, and as instantiated.
void hold(Card& card, std::uint64_t graph, int more, Status& done) {
  int& held = card.graph_holders[graph];
  held += more;
  if (held > 0) return;
  card.graph_holders.erase(graph);
  done = card.device().destroy(Graph{graph});
}

cudaError_t let_go(std::uint64_t graph) {
  return on_card([graph](SimulatedDevice& /*device*/) {
    Status done;
    hold(*Card::current(), graph, -1, done);
    return done;
  });
}

}  // namespace

cudaError_t code_of(const Status& done, During during) {
  if (done) return cudaSuccess;
  const std::string_view reason = done.error().reason;
  if (reason == "alloc_failed") return cudaErrorMemoryAllocation;
  if (reason == "bad_pointer")
    return during == During::kWait ? cudaErrorIllegalAddress : cudaErrorInvalidValue;
  if (reason == "device_lost") return cudaErrorDevicesUnavailable;
  if (reason == "capturing") return cudaErrorStreamCaptureUnsupported;
  if (reason == "bad_capture") return cudaErrorStreamCaptureUnjoined;
  return cudaErrorInvalidResourceHandle;
}

}  // namespace kvo::cuda

namespace standin = kvo::cuda;
using kvo::Event;
using kvo::Graph;
using kvo::SimulatedDevice;
using kvo::Status;
using kvo::Stream;
using Call = kvo::StreamCall::Kind;

namespace {

Stream stream_of(cudaStream_t stream) {
  return {standin::number_of(stream)};
}
Event event_of(cudaEvent_t event) {
  return {standin::number_of(event)};
}
/// A call of a stream or an event that returns nothing.
cudaError_t control(const kvo::StreamCall& call, standin::During during = standin::During::kQueue) {
  return standin::on_card(
      [&](SimulatedDevice& device) -> Status {
        const auto done = device.control(call);
        return done ? Status() : done.error();
      },
      during);
}
std::span<const std::byte> bytes_at(const void* data, std::size_t count) {
  return {static_cast<const std::byte*>(data), count};
}
std::span<std::byte> bytes_at(void* data, std::size_t count) {
  return {static_cast<std::byte*>(data), count};
}

}  // namespace

extern "C" {

// ---- the machine ----

cudaError_t cudaGetDeviceCount(int* count) {
  *count = standin::Card::current() == nullptr ? 0 : 1;
  return standin::remember(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaSetDevice(int device) {
  if (standin::Card::current() == nullptr) return standin::remember(cudaErrorNoDevice);
  return standin::remember(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  standin::Card* const card = standin::Card::current();
  if (card == nullptr) return standin::remember(cudaErrorNoDevice);
  if (device != 0) return standin::remember(cudaErrorInvalidDevice);
  constexpr std::string_view kName = "simulated card";
  *properties = {};
  std::ranges::copy(kName, properties->name);
  properties->major = card->options().major;
  properties->minor = card->options().minor;
  return standin::remember(cudaSuccess);
}

const char* cudaGetErrorName(cudaError_t error) {
#define KVO_NAMED(code) std::pair(code, #code)
  static constexpr std::array kNames{KVO_NAMED(cudaSuccess),
                                     KVO_NAMED(cudaErrorInvalidValue),
                                     KVO_NAMED(cudaErrorMemoryAllocation),
                                     KVO_NAMED(cudaErrorInvalidConfiguration),
                                     KVO_NAMED(cudaErrorInvalidDeviceFunction),
                                     KVO_NAMED(cudaErrorNoDevice),
                                     KVO_NAMED(cudaErrorInvalidDevice),
                                     KVO_NAMED(cudaErrorNoKernelImageForDevice),
                                     KVO_NAMED(cudaErrorInvalidResourceHandle),
                                     KVO_NAMED(cudaErrorIllegalAddress),
                                     KVO_NAMED(cudaErrorDevicesUnavailable),
                                     KVO_NAMED(cudaErrorStreamCaptureUnsupported),
                                     KVO_NAMED(cudaErrorStreamCaptureUnjoined),
                                     KVO_NAMED(cudaErrorNotSupported)};
#undef KVO_NAMED
  for (const auto& [code, name] : kNames)
    if (code == error) return name;
  return "an error that the stand-in does not know";
}

const char* cudaGetErrorString(cudaError_t error) {
  return cudaGetErrorName(error);
}

cudaError_t cudaGetLastError() {
  return standin::take_last_error();
}

// ---- memory ----

cudaError_t cudaMalloc(void** made, std::size_t bytes) {
  return standin::on_card([&](SimulatedDevice& device) -> Status {
    const auto ptr = device.alloc(static_cast<std::int64_t>(bytes));
    if (!ptr) return ptr.error();
    *made = ptr->as<void>();
    return {};
  });
}

cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return standin::remember(cudaSuccess);
  return standin::on_card(
      [&](SimulatedDevice& device) { return device.free(standin::device_ptr(pointer)); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return standin::on_card([&](SimulatedDevice& device) -> Status {
    const Stream on = stream_of(stream);
    switch (kind) {
      case cudaMemcpyHostToDevice:
        return device.to_device_async(standin::device_ptr(to), bytes_at(from, bytes), on);
      case cudaMemcpyDeviceToHost:
        return device.to_host_async(bytes_at(to, bytes), standin::device_ptr(from), on);
      case cudaMemcpyDeviceToDevice:
        return device.copy_async(standin::device_ptr(to), standin::device_ptr(from),
                                 static_cast<std::int64_t>(bytes), on);
      default:
        return kvo::fail_other("bad_pointer");  // the direction must be said
    }
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return standin::on_card([&](SimulatedDevice& device) {
    return device.fill_async(standin::device_ptr(to), static_cast<std::byte>(value),
                             static_cast<std::int64_t>(bytes), stream_of(stream));
  });
}

// ---- streams and events ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned flags) {
  // One that waits for the default stream by itself is not simulated.
  if (flags != cudaStreamNonBlocking) return standin::remember(cudaErrorNotSupported);
  return standin::make_on_card(made,
                               [](SimulatedDevice& device) { return device.create_stream(); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return control({.kind = Call::kDestroyStream, .stream = stream_of(stream)});
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return control({.kind = Call::kSynchronizeStream, .stream = stream_of(stream)},
                 standin::During::kWait);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return control({Call::kWait, stream_of(stream), event_of(event)});
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned /*flags*/) {
  return standin::make_on_card(made, [](SimulatedDevice& device) { return device.create_event(); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return control({.kind = Call::kDestroyEvent, .event = event_of(event)});
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return control({Call::kRecord, stream_of(stream), event_of(event)});
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return control({.kind = Call::kSynchronizeEvent, .event = event_of(event)},
                 standin::During::kWait);
}

// ---- graphs ----

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  return control({.kind = Call::kBeginCapture, .stream = stream_of(stream)});
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* captured) {
  *captured = nullptr;
  return standin::on_card([&](SimulatedDevice& device) -> Status {
    const auto graph = device.end_capture(stream_of(stream));
    if (!graph) return graph.error();
    Status done;
    standin::hold(*standin::Card::current(), graph->id, 1, done);
    *captured = standin::handle_of<cudaGraph_t>(graph->id);
    return done;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {  // NOLINT: their type
  return standin::on_card([&](SimulatedDevice& /*device*/) {
    Status done;
    standin::hold(*standin::Card::current(), standin::number_of(graph), 1, done);
    *made = standin::handle_of<cudaGraphExec_t>(standin::number_of(graph));
    return done;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return standin::let_go(standin::number_of(graph));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return standin::let_go(standin::number_of(graph));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  ++standin::launch_counts().replays;
  return control({.kind = Call::kReplay,
                  .stream = stream_of(stream),
                  .graph = Graph{standin::number_of(graph)}});
}

}  // extern "C"
