// How operations of `provider.device` reach a cache.
#include "reference/contract/device/recorded_device.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/contract/values/thrown.hpp"
#include "reference/provider/device_operations.hpp"

namespace kvo::provider {
namespace {

using Where = ShownPtr::Where;

// What the device below answers is answered by the session.
template <class T>
std::vector<T> read_cells(Device& memory, DevicePtr from, std::int64_t count) {
  std::vector<T> cells(static_cast<std::size_t>(count));
  demand(memory.to_host(std::as_writable_bytes(std::span(cells)), from));
  return cells;
}

class DeviceSession final : public DispatchSession<DeviceSession, DeviceOps> {
 public:
  DeviceSession(MakeDevice make, QuirkSet<Quirk> quirks, std::shared_ptr<Device> memory)
      : make_(std::move(make)),
        quirks_(quirks),
        device_(std::make_shared<RecordedDevice>(std::move(memory))) {}

  Observation apply(const Op& op, Probe& probe) override {
    device_->begin();
    RecordedDevice::Transaction transaction(*device_);
    Observation seen = DispatchSession::apply(op, probe);
    if (!seen.failed_with(Code::kOutOfMemory)) transaction.commit();
    return seen;
  }

  Answer<Calls> operator()(const NewDevice& op) {
    const bool kernels = device_->kernels();
    device_->set_kernels(op.kernels == Kernels::kHost);
    const DeviceOptions options{.memory = op.nil_allocator ? nullptr : device_,
                                .num_layers = op.num_layers,
                                .max_seq_len = op.max_seq_len,
                                .num_heads = op.num_heads,
                                .head_dim = op.head_dim};
    auto made = probe()([&] { return make_(options, quirks_); });
    if (!made) {
      device_->set_kernels(kernels);
      return {made.error(), {device_->calls()}};
    }
    Answer<Calls> answer{.returns = {device_->calls()}};
    close_quietly();
    cache_ = std::move(*made);
    sizes_ = options;
    return answer;
  }
  Answer<Calls> operator()(const Append& op) {
    return changing([&] { return cache_->append(op.layer, op.k, op.v, op.seq_pos); });
  }
  Answer<Calls> operator()(const AppendGpu& op) {
    const RecordedDevice::Source k(*device_, Where::kKSource, std::as_bytes(std::span(op.k)));
    const RecordedDevice::Source v(*device_, Where::kVSource, std::as_bytes(std::span(op.v)));
    return changing([&] { return cache_->append_gpu(op.layer, k.ptr(), v.ptr()); });
  }
  Result<Number> operator()(const SeqLen& op) {
    if (!cache_ || op.cache.value_or(0) != 0) return no_cache();
    return Number{probe()([&] { return cache_->seq_len(); })};
  }
  Result<Pointers::Returns> operator()(const Pointers& op) {
    if (!cache_) return no_cache();
    const LayerPointers seen = probe()([&] { return cache_->pointers(op.layer); });
    return Pointers::Returns{device_->shown(seen.k), device_->shown(seen.v), seen.length};
  }
  Result<CounterPtr::Returns> operator()(const CounterPtr& /*op*/) {
    if (!cache_) return no_cache();
    return CounterPtr::Returns{device_->shown(probe()([&] { return cache_->counter(); }))};
  }
  Result<ReadCounter::Returns> operator()(const ReadCounter& /*op*/) {
    if (!cache_) return no_cache();
    const DevicePtr counter = cache_->counter();
    if (!counter) return ReadCounter::Returns{};
    return ReadCounter::Returns{
        std::int64_t{read_cells<std::int32_t>(device_->below(), counter, 1).front()}};
  }
  Answer<DevicePointerArrays::Returns> operator()(const DevicePointerArrays& /*op*/) {
    if (!cache_) return {no_cache()};
    const auto arrays = probe()([&] { return cache_->pointer_arrays(); });
    if (!arrays) return {arrays.error(), {device_->calls()}};
    return {.returns = {.calls = device_->calls(),
                        .k = device_->shown(arrays->k),
                        .v = device_->shown(arrays->v),
                        .k_content = content(arrays->k),
                        .v_content = content(arrays->v)}};
  }
  Result<ReadBuffer::Returns> operator()(const ReadBuffer& op) {
    if (!cache_) return no_cache();
    const LayerPointers seen = cache_->pointers(op.layer);
    if (!seen.k || !seen.v) return ReadBuffer::Returns{};
    return ReadBuffer::Returns{true, buffer(seen.k), buffer(seen.v)};
  }
  Result<LiveBuffers::Returns> operator()(const LiveBuffers& /*op*/) {
    return LiveBuffers::Returns{device_->live_buffers()};
  }
  Answer<Calls> operator()(const SyncDeviceCounter& /*op*/) {
    return changing([&] { return cache_->sync_counter(); });
  }
  Answer<Calls> operator()(const ResetDevice& /*op*/) {
    return changing([&]() -> Status {
      cache_->reset();
      return {};
    });
  }
  Answer<Calls> operator()(const Close& /*op*/) {
    return changing([&] { return cache_->close(); });
  }
  Status operator()(const InjectDevice& op) {
    Faults faults = device_->faults();
    faults.alloc = op.alloc_fail_at.value_or(faults.alloc);
    faults.free = op.free_fail_at.value_or(faults.free);
    faults.memcpy = op.memcpy_fail_at.value_or(faults.memcpy);
    faults.kernel = op.kernel_fail_at.value_or(faults.kernel);
    device_->set_faults(faults);
    return {};
  }

 private:
  static Error no_cache() { return fail(Code::kPrecondition, "no cache"); }

  template <class Run>
  Answer<Calls> changing(Run&& run) {
    if (!cache_) return {no_cache()};
    const Status done = probe()(std::forward<Run>(run));
    return {done ? std::nullopt : std::optional(done.error()), {device_->calls()}};
  }
  // What a cache that is replaced still holds goes back, beyond the reach of pending failures.
  void close_quietly() {
    if (!cache_) return;
    const Faults faults = device_->faults();
    device_->set_faults({});
    (void)cache_->close();
    device_->set_faults(faults);
  }
  std::vector<ShownPtr> content(DevicePtr array) {
    std::vector<ShownPtr> shown;
    for (const DevicePtr ptr : read_cells<DevicePtr>(device_->below(), array, sizes_.num_layers))
      shown.push_back(device_->shown(ptr));
    return shown;
  }
  Tensor buffer(DevicePtr from) {
    const std::int64_t width = sizes_.num_heads * sizes_.head_dim;
    return tensor_of({sizes_.max_seq_len, width},
                     read_cells<float>(device_->below(), from, sizes_.max_seq_len * width));
  }

  MakeDevice make_;
  QuirkSet<Quirk> quirks_;
  std::shared_ptr<RecordedDevice> device_;
  std::unique_ptr<DeviceKv> cache_;
  DeviceOptions sizes_;
};

}  // namespace

const CacheKind& device_kind() {
  static constexpr auto kRows = rows_of(kQuirkRows, kDeviceQuirks);
  static const CacheKind kKind{.contract = "provider",
                               .cache = "device",
                               .doc = "device buffers and a device counter (zerfoo GPUKVCache)",
                               .operations = op_kinds(DeviceOps()),
                               .config = &type_of<DeviceConfig>(),
                               .quirks = kRows};
  return kKind;
}

Subject make_device_subject(std::string variant, std::string doc, MakeDevice make,
                            OpenDevice make_memory) {
  return subject_of<Quirk>(
      device_kind(), std::move(variant), std::move(doc),
      [make = std::move(make), make_memory = std::move(make_memory)](
          const Setup& /*setup*/, QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<Session>> {
        auto memory = make_memory();
        if (!memory) return memory.error();
        return std::make_unique<DeviceSession>(make, quirks, std::move(*memory));
      },
      kQuirkRows);
}

}  // namespace kvo::provider

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_DEVICE_OPERATIONS)
}  // namespace kvo
