// Faults of the device work of positional.
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "cuda/jobs/build_mask.hpp"
#include "cuda/jobs/cells.hpp"
#include "cuda/subjects.hpp"
#include "properties/devices/mutants/device_mutant.hpp"
#include "reference/contract/device/device.hpp"

namespace kvo::devices {
namespace {

// ---- Streams, events and waiting ----

class ShiftsOnASecondStream final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  ~ShiftsOnASecondStream() override {
    if (second_) (void)below_->destroy(*second_);
  }
  Status queue(const Work& work, Stream stream) override {
    if (!work.job) return below_->queue(work, stream);
    const Job& job = *work.job;
    const std::string_view name = job.type().name;
    if (name != "rope_shift" && name != "add_shift") return below_->launch(job, stream);
    if (!second_) {
      const auto made = below_->create_stream();
      if (!made) return made.error();
      second_ = *made;
    }
    return below_->launch(job, *second_);
  }

 private:
  std::optional<Stream> second_;
};

class WaitsForNoUpload final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Result<std::uint64_t> control(const StreamCall& call) override {
    if (call.kind == StreamCall::Kind::kWait) return std::uint64_t{0};
    return below_->control(call);
  }
};

class WaitsForWhatItReadsAlone final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status queue(const Work& work, Stream stream) override {
    reads_ = reads_ || work.kind == Work::Kind::kToHost;
    return below_->queue(work, stream);
  }
  Result<std::uint64_t> control(const StreamCall& call) override {
    if (call.kind != StreamCall::Kind::kSynchronizeStream) return below_->control(call);
    if (!reads_) return std::uint64_t{0};
    if (call.stream == Stream()) reads_ = false;
    return below_->control(call);
  }

 private:
  bool reads_ = false;
};

// ---- Kernels ----

/// Launches a faulty job in place of each of some types.
template <class... Faulty>
class LaunchesOthers final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status queue(const Work& work, Stream stream) override {
    if (!work.job) return below_->queue(work, stream);
    const Job& job = *work.job;
    std::optional<Job> other;
    (replace<Faulty>(job, other), ...);
    return below_->launch(other.value_or(job), stream);
  }

 private:
  template <class Fault>
  static void replace(const Job& job, std::optional<Job>& other) {
    using Sound = typename Fault::Sound;
    if (&job.type() == &kJobType<Sound>) other = Job(Fault{*static_cast<const Sound*>(job.data())});
  }
};

template <class Cell>
struct MaskOfWholeTiles : cuda::BuildMask<Cell> {
  using Sound = cuda::BuildMask<Cell>;
  [[nodiscard]] std::int64_t items() const {
    constexpr std::int64_t kTile = 16;
    return Sound::items() / kTile * kTile;
  }
};

template <class Format, int kLanes>
struct PutBesideTheFirst : cuda::PutCells<Format, kLanes> {
  using Sound = cuda::PutCells<Format, kLanes>;
  template <class Memory>
  void run(std::int64_t i, Memory& memory) const {
    const std::int64_t cell = memory.load(this->targets) + i / this->width;
    const auto from = memory.load(this->rows + i);
    typename Sound::To to = {};
    for (int lane = 0; lane < kLanes; ++lane) to.lanes[lane] = Format::narrow(from.lanes[lane]);
    memory.store(this->cells + cell * this->width + i % this->width, to);
  }
};

template <class Format, int kLanes>
struct PutAtNarrowOffsets : cuda::PutCells<Format, kLanes> {
  using Sound = cuda::PutCells<Format, kLanes>;
  template <class Memory>
  void run(std::int64_t i, Memory& memory) const {
    const std::int64_t cell = memory.load(this->targets + i / this->width);
    const auto element =
        static_cast<std::uint32_t>((cell * this->width + i % this->width) * kLanes);
    const auto from = memory.load(this->rows + i);
    typename Sound::To to = {};
    for (int lane = 0; lane < kLanes; ++lane) to.lanes[lane] = Format::narrow(from.lanes[lane]);
    memory.store(this->cells + element / kLanes, to);
  }
};

template <template <class, int> class Put>
using LaunchesOtherPuts =
    LaunchesOthers<Put<cuda::FloatCell, 4>, Put<cuda::FloatCell, 1>, Put<cuda::HalfCell, 4>,
                   Put<cuda::HalfCell, 1>, Put<cuda::BrainCell, 4>, Put<cuda::BrainCell, 1>,
                   Put<cuda::E4m3Cell, 4>, Put<cuda::E4m3Cell, 1>, Put<cuda::E5m2Cell, 4>,
                   Put<cuda::E5m2Cell, 1>>;

// ---- The table ----

enum class Kind : std::uint8_t { kCausal, kSwa, kSwaMem, kChunked };  // as positional_subjects

template <class Device>
DeviceMutant positional_fault(Kind kind, std::string name, std::string fault, std::string origin) {
  const std::string variant = "mutant:" + name;
  const auto over = [kind, variant](const OpenDevice& open) {
    const auto faulty = [open]() -> Result<std::shared_ptr<kvo::Device>> {
      auto below = open();
      if (!below) return below;
      return std::make_shared<Device>(*below);
    };
    return cuda::positional_subjects(variant, faulty)[static_cast<std::size_t>(kind)];
  };
  return {std::move(name), std::move(fault), std::move(origin), over};
}

}  // namespace

std::vector<DeviceMutant> positional_device_mutants() {
  return {
      positional_fault<ShiftsOnASecondStream>(
          Kind::kCausal, "shifts_on_a_second_stream",
          "keys are moved on a stream that nothing is ordered with",
          "B069, F07: transfers of TensorRT-LLM were not ordered with the reuse of their blocks"),
      positional_fault<WaitsForNoUpload>(
          Kind::kSwa, "waits_for_no_upload",
          "kernels do not wait for the event behind the upload of what they read",
          "B070, F07: llama.cpp is reported to overwrite the inputs of a batch that still runs"),
      positional_fault<WaitsForWhatItReadsAlone>(
          Kind::kSwaMem, "gives_rows_back_early",
          "an operation that reads nothing back returns before its uploads have taken place",
          "B067, F07: zerfoo freed the rows of an asynchronous copy before it was complete"),
      positional_fault<
          LaunchesOthers<MaskOfWholeTiles<std::uint32_t>, MaskOfWholeTiles<std::uint16_t>>>(
          Kind::kChunked, "mask_of_whole_tiles",
          "columns of a mask behind its last whole tile are not written",
          "B083, F09: FlashInfer bounded what it touches in pages instead of tokens"),
      positional_fault<LaunchesOtherPuts<PutBesideTheFirst>>(
          Kind::kCausal, "puts_beside_the_first",
          "rows of a batch go to the cells behind its first one, not to those of a table",
          "B087, F09: text-generation-inference took the slots of a batch for neighbours"),
  };
}

DeviceMutant narrow_offsets_mutant() {
  return positional_fault<LaunchesOtherPuts<PutAtNarrowOffsets>>(
      Kind::kCausal, "puts_at_narrow_offsets", "offsets in the pool are counted in 32 bits",
      "B089, F10: vLLM multiplied block and stride in 32 bits");
}

}  // namespace kvo::devices
