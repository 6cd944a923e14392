// The device mutants of contract `provider`.
#include <optional>
#include <string_view>
#include <utility>

#include "cuda/provider/kv_device_cache.hpp"
#include "cuda/provider/tensor_device_cache.hpp"
#include "cuda/subjects.hpp"
#include "properties/devices/graphed_tensor.hpp"
#include "properties/devices/mutants/device_mutant.hpp"
#include "properties/devices/mutants/faulty_device.hpp"
#include "properties/devices/mutants/faulty_jobs.hpp"
#include "reference/contract/device/jobs.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/provider/device_operations.hpp"
#include "reference/provider/tensor_operations.hpp"

namespace kvo::devices {
namespace {

using provider::Quirk;
using provider::TensorBacked;
using provider::TensorOptions;

// ---- faults of the device below a sound cache ----

/// Nothing waits for an event.
class EventWaitsDropped final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  [[nodiscard]] Status wait(Stream /*stream*/, Event /*event*/) override { return {}; }
};

/// Launches of one kernel go to a stream of their own, which nothing orders with the others.
class SecondStream : public FaultyDevice {
 public:
  SecondStream(std::shared_ptr<Device> below, std::string_view kernel)
      : FaultyDevice(std::move(below)), kernel_(kernel) {}
  ~SecondStream() override {
    if (second_) (void)below_->destroy(*second_);
  }
  SecondStream(const SecondStream&) = delete;
  SecondStream& operator=(const SecondStream&) = delete;
  [[nodiscard]] Status launch(const Job& job, Stream stream) override {
    if (job.type().name != kernel_) return below_->launch(job, stream);
    if (!second_) {
      const auto made = below_->create_stream();
      if (!made) return made.error();
      second_ = *made;
    }
    return below_->launch(job, *second_);
  }

 private:
  std::string_view kernel_;
  std::optional<Stream> second_;
};
class IncrementsOnASecondStream final : public SecondStream {
 public:
  explicit IncrementsOnASecondStream(std::shared_ptr<Device> below)
      : SecondStream(std::move(below), IncrementJob::kName) {}
};
class RowsOnASecondStream final : public SecondStream {
 public:
  explicit RowsOnASecondStream(std::shared_ptr<Device> below)
      : SecondStream(std::move(below), OffsetCopyJob::kName) {}
};

/// A mutant whose cache is sound, over a `Faulty` device.
template <class Faulty>
DeviceMutant device_fault(std::string_view cache, std::string name, std::string fault,
                          std::string origin) {
  const auto over = [cache, name, fault](const OpenDevice& open) {
    const OpenDevice faulty = [open]() -> Result<std::shared_ptr<Device>> {
      auto below = open();
      if (!below) return below.error();
      return std::make_shared<Faulty>(std::move(*below));
    };
    for (Subject& subject : cuda::provider_subjects("mutant:" + name, faulty)) {
      if (subject.kind->cache != cache) continue;
      subject.doc = fault;
      return subject;
    }
    throw CheckFailed("no such cache");
  };
  return {std::move(name), std::move(fault), std::move(origin), over};
}

// ---- faults of provider.device ----

/// Uploads rows on a stream that nothing waits for.
class HostRowsNotWaitedFor final : public cuda::KvMemory {
 public:
  using KvMemory::KvMemory;
  ~HostRowsNotWaitedFor() override {
    if (late_) (void)device_->destroy(*late_);
  }
  HostRowsNotWaitedFor(const HostRowsNotWaitedFor&) = delete;
  HostRowsNotWaitedFor& operator=(const HostRowsNotWaitedFor&) = delete;

 private:
  [[nodiscard]] Status upload_row(std::size_t /*side*/, DevicePtr to,
                                  std::span<const float> row) override {
    if (!late_) {
      const auto made = device_->create_stream();
      if (!made) return made.error();
      late_ = *made;
    }
    return device_->to_device_async(to, std::as_bytes(row), *late_);
  }

  std::optional<Stream> late_;
};

/// A reset does not set the counter on the device.
class ResetKeepsTheCounter final : public cuda::KvMemory {
 public:
  using KvMemory::KvMemory;
  [[nodiscard]] Status write(std::int64_t value) override {
    const bool first = !std::exchange(written_, true);
    return first || value != 0 ? KvMemory::write(value) : Status();
  }

 private:
  bool written_ = false;
};

template <class Faulty>
DeviceMutant kv_fault(std::string name, std::string fault, std::string origin) {
  const auto over = [name, fault](const OpenDevice& open) {
    return provider::make_device_subject("mutant:" + name, fault, cuda::KvCache<Faulty>::make,
                                         open);
  };
  return {std::move(name), std::move(fault), std::move(origin), over};
}

// ---- faults of provider.tensor ----

/// Converts through scratch memory and gives it back before the copy from it is done.
class ScratchFreedBeforeUse final : public cuda::TensorDeviceCache {
 public:
  using TensorDeviceCache::TensorDeviceCache;

 protected:
  [[nodiscard]] Status store(const Layer& layer, const Step& step, std::size_t side) override {
    const Source& source = step.sources[side];
    if (!layer.half || !source.device) return TensorDeviceCache::store(layer, step, side);
    return step.lanes[side].each([&](const Lanes::Piece& piece) -> Status {
      const auto scratch = device_->alloc(piece.count * kHalf);
      if (!scratch) return scratch.error();
      const DevicePtr from = source.device + piece.packed * kFloat;
      const ToHalfJob convert{scratch->as<std::uint16_t>(), from.as<const std::uint32_t>(),
                              piece.count};
      Status done = device_->run(convert);
      if (done) done = device_->copy(layer.at(side, piece.stored), *scratch, piece.count * kHalf);
      (void)device_->free(*scratch);
      return done;
    });
  }
};

/// Rolls back on the host alone.
class TruncateKeepsTheCounters final : public cuda::TensorDeviceCache {
 public:
  using TensorDeviceCache::TensorDeviceCache;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    const Counter gpu_counter = std::exchange(gpu_counter_, {});
    const Counter kv_seq_len = std::exchange(kv_seq_len_, {});
    Status done = TensorDeviceCache::truncate(n);
    gpu_counter_ = gpu_counter;
    kv_seq_len_ = kv_seq_len;
    return done;
  }
};

/// Takes it that nobody else moves the counters while a graph does.
class ReplaysUncounted final : public cuda::TensorDeviceCache {
 public:
  using TensorDeviceCache::TensorDeviceCache;
  [[nodiscard]] Status before_replay() override {
    const auto gpu_counter = gpu_counter_.held;
    const auto kv_seq_len = kv_seq_len_.held;
    Status done = TensorDeviceCache::before_replay();
    gpu_counter_.held = gpu_counter;
    kv_seq_len_.held = kv_seq_len;
    return done;
  }
};

/// Lets graphs go on over buffers that were given back.
class GraphOutlivesTheBuffers final : public cuda::TensorDeviceCache {
 public:
  using TensorDeviceCache::TensorDeviceCache;
  void free() override {
    const auto life = life_;
    TensorDeviceCache::free();
    life_ = life;
  }
  [[nodiscard]] Status before_replay() override {
    return gpu_counter_.cell ? TensorDeviceCache::before_replay() : Status();
  }
};

template <class Faulty>
std::unique_ptr<TensorBacked> as_it_is(std::unique_ptr<Faulty> cache,
                                       const TensorOptions& /*options*/,
                                       QuirkSet<Quirk> /*quirks*/) {
  return cache;
}
template <class Faulty>
std::unique_ptr<TensorBacked> graphed(std::unique_ptr<Faulty> cache, const TensorOptions& options,
                                      QuirkSet<Quirk> quirks) {
  return std::make_unique<GraphedTensor>(std::move(cache), options, quirks);
}

template <class Faulty>
DeviceMutant tensor_fault(std::string name, std::string fault, std::string origin,
                          std::unique_ptr<TensorBacked> (*finish)(std::unique_ptr<Faulty>,
                                                                  const TensorOptions&,
                                                                  QuirkSet<Quirk>)) {
  const auto make = [finish](const TensorOptions& options,
                             QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<TensorBacked>> {
    auto made = cuda::TensorDeviceCache::make_as<Faulty>(options, quirks);
    if (!made) return made.error();
    return finish(std::move(*made), options, quirks);
  };
  const auto over = [make, name, fault](const OpenDevice& open) {
    return provider::make_tensor_subject("mutant:" + name, fault, make, open);
  };
  // Only a rule of profile documented says what a replay leaves.
  const bool replayed = finish == graphed<Faulty>;
  return {std::move(name), std::move(fault), std::move(origin), over,
          replayed ? std::optional(Profile::kDocumented) : std::nullopt};
}

}  // namespace

std::vector<DeviceMutant> provider_device_mutants() {
  return {
      device_fault<EventWaitsDropped>("contiguous", "event_waits_dropped",
                                      "rows are put in place before they are uploaded",
                                      "F07: work on two streams without an order, as in B069"),
      device_fault<IncrementsOnASecondStream>(
          "device", "increments_on_a_second_stream",
          "the counter moves on while the rows of the position are under way",
          "F07: a position published before it is written, as in B063"),
      device_fault<RowsOnASecondStream>("tensor", "rows_on_a_second_stream",
                                        "rows are written on a stream that nothing waits for",
                                        "B070, F07: llama.cpp overwrote inputs of a batch that "
                                        "was still running"),
      kv_fault<HostRowsNotWaitedFor>("host_rows_not_waited_for",
                                     "append returns before the caller's rows are read",
                                     "B070, F07: llama.cpp overwrote inputs of a batch that was "
                                     "still running"),
      kv_fault<ResetKeepsTheCounter>("reset_keeps_the_counter",
                                     "reset forgets the counter on the device",
                                     "B066, F07: zerfoo's truncate rolled back the host and forgot "
                                     "the counters on the device"),
      tensor_fault<ScratchFreedBeforeUse>(
          "scratch_freed_before_use", "fp16 scratch is freed when its use has been queued",
          "B067, F07: zerfoo freed an fp16 buffer before the copy from it was done",
          as_it_is<ScratchFreedBeforeUse>),
      tensor_fault<TruncateKeepsTheCounters>(
          "truncate_keeps_the_counters", "truncate between replays forgets the counters",
          "B066, F07: zerfoo's truncate rolled back the host and forgot the counters on the device",
          graphed<TruncateKeepsTheCounters>),
      tensor_fault<ReplaysUncounted>(
          "replays_uncounted", "sync_counter takes what the counter held before the replays",
          "B065, F07: zerfoo's counter on the device and its length on the host parted",
          graphed<ReplaysUncounted>),
      tensor_fault<GraphOutlivesTheBuffers>(
          "graph_outlives_the_buffers", "a graph is replayed over buffers that were given back",
          "F07: memory given back in flight, as in B063", graphed<GraphOutlivesTheBuffers>),
      device_fault<FaultyJobs<LastTileDropped>>(
          "tensor", "last_tile_dropped",
          "rows are written in tiles of four cells, without the rest",
          "F09: the boundary tile of a kernel, as in B082"),
      device_fault<FaultyJobs<GridTooSmall>>("device", "grid_too_small",
                                             "a launch has one thread too few for its cells",
                                             "F09: a grid that leaves cells out, as in B082"),
      device_fault<FaultyJobs<RowsTransposed>>(
          "device", "rows_transposed",
          "the decode kernel writes cell by cell instead of row by row",
          "B081, F09: zerfoo's decode kernel took rows for head-major"),
  };
}

}  // namespace kvo::devices
