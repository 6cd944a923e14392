#include "properties/devices/mutants/card_faults.hpp"

namespace kvo::card {
namespace {

constexpr std::string_view kDevice = "cuda/device/cuda_device.cpp";
constexpr std::string_view kLaunchers = "cuda/jobs/launchers.cu";

std::vector<seeding::Fault> of_launches() {
  return {
      {"launches",
       "on_the_default_stream",
       "kernels are launched on the runtime's default stream",
       "B070, F07: llama.cpp overwrote the inputs of a step that was still running",
       {{kLaunchers, "stream", "nullptr", "grid.threads, 0,"}}},
      {"launches",
       "blocks_rounded_down",
       "blocks are counted without the last one that is not full",
       "B082, F09: a kernel of FlashInfer missed the last page of a tile",
       {{kLaunchers, "geometry(job.items())",
         "Geometry{static_cast<unsigned>(job.items() / kThreads), unsigned{kThreads}}"}}},
      {"launches",
       "last_argument_left_out",
       "the last 8 bytes of the arguments are not passed on",
       "B085, F09: OpenVINO passed on strides that were stale",
       {{kLaunchers, "job",
         "[&] { T cut = job;"
         " std::memset(reinterpret_cast<char*>(&cut) + sizeof(T) - 8, 0, 8); return cut; }()",
         "stream>>>("}}},
      {"launches",
       "kernel_by_name",
       "a kernel is looked up by its name, which those of other units have, too",
       "B086, F09: LMCache took one layout for another that looked alike",
       {{kLaunchers, "launcher.type == &type", "launcher.type->name == type.name"}}},
      {"launches",
       "items_in_32_bits",
       "a job of 2^31 items counts as empty",
       "B090, F10: FlashInfer computed the place of a page in 32 bits",
       {{kLaunchers, "job.items() <= 0", "static_cast<std::int32_t>(job.items()) <= 0"}}},
  };
}

std::vector<seeding::Fault> of_the_device() {
  return {
      {"card",
       "recorded_on_the_default_stream",
       "an event is put behind the work of the default stream",
       "B069, F07: TensorRT-LLM did not wait for copies before it used their blocks again",
       {{kDevice, "streams_.at(stream.id)", "streams_.at(Stream().id)",
         "cudaEventRecord(events_.at(event.id),"}}},
      {"card",
       "waits_for_no_event",
       "a stream does not wait for events",
       "B070, F07: llama.cpp used input buffers before the copies into them were done",
       {{kDevice,
         "return status(cudaStreamWaitEvent(streams_.at(stream.id), events_.at(event.id), 0));",
         "return {};"}}},
      {"card",
       "copies_on_another_stream",
       "copies on the device run on a stream that nobody waits for",
       "B067, F07: a buffer of zerfoo's was freed before the copy from it was done",
       {{kDevice, "streams_.at(stream.id)", "zeroing_", "cudaMemcpyDeviceToDevice,"}}},
      {"card",
       "zeroing_not_waited_for",
       "memory is handed out while its zeroing is under way",
       "B063, F07: a block of vLLM's was given to a load while a step still read it",
       {{kDevice, "if (zeroed) zeroed = status(cudaStreamSynchronize(zeroing_));", ""}}},
      {"card",
       "fill_of_32_bits",
       "the size of a fill is computed in 32 bits",
       "B093, F10: Mooncake summed sizes beyond 4 GiB in 32 bits",
       {{kDevice, "static_cast<std::size_t>(bytes)", "static_cast<std::uint32_t>(bytes)",
         "std::to_integer<int>(value),"}}},
      {"card",
       "captures_the_default_stream",
       "a capture begins on the default stream",
       "B066, F07: zerfoo counted twice after a capture that had failed",
       {{kDevice, "streams_.at(stream.id)", "streams_.at(Stream().id)",
         "status(cudaStreamBeginCapture("}}},
      {"card",
       "replays_on_another_stream",
       "a graph is replayed on a stream that nobody waits for",
       "B070, F07: llama.cpp overwrote the inputs of a step that was still running",
       {{kDevice, "streams_.at(stream.id)", "zeroing_", "cudaGraphLaunch(found->second,"}}},
      {"card",
       "replays_twice",
       "a graph is replayed twice",
       "B066, F07: zerfoo updated twice after a capture that had failed",
       {{kDevice, "return status(cudaGraphLaunch(found->second, streams_.at(stream.id)));",
         "(void)cudaGraphLaunch(found->second, streams_.at(stream.id));"
         " return status(cudaGraphLaunch(found->second, streams_.at(stream.id)));"}}},
  };
}

}  // namespace

const std::vector<seeding::Fault>& faults() {
  static const std::vector<seeding::Fault> kFaults = [] {
    auto all = of_launches();
    const auto more = of_the_device();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kFaults;
}

}  // namespace kvo::card
