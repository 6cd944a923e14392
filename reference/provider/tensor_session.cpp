// How operations of `provider.tensor` reach a cache.
#include "reference/contract/device/recorded_device.hpp"
#include "reference/contract/values/thrown.hpp"
#include "reference/provider/shared_session.hpp"
#include "reference/provider/tensor.hpp"

namespace kvo::provider {
namespace {

using Source = RecordedDevice::Source;
using Where = ShownPtr::Where;

struct TensorEntry {
  std::unique_ptr<TensorBacked> cache;
  bool has_device = false;
  TensorBacked* operator->() const { return cache.get(); }
};

class TensorSession final
    : public DispatchSession<TensorSession, TensorOps, SharedSession<TensorBacked, TensorEntry>> {
 public:
  TensorSession(MakeTensor make, QuirkSet<Quirk> quirks, std::shared_ptr<Device> memory)
      : make_(std::move(make)),
        quirks_(quirks),
        device_(
            std::make_shared<RecordedDevice>(std::move(memory), RecordedDevice::Recording::kOff)) {}

  Observation apply(const Op& op, Probe& probe) override {
    RecordedDevice::Transaction transaction(*device_);
    Observation seen = DispatchSession::apply(op, probe);
    if (!seen.failed_with(Code::kOutOfMemory)) transaction.commit();
    return seen;
  }
  using SharedSession::operator();
  Status operator()(const NewTensor& op) {
    const bool has_device = op.device == Place::kGpu;
    const TensorOptions options{.num_layers = op.num_layers,
                                .max_seq_len = op.max_seq_len,
                                .dtype = op.dtype,
                                .stream = op.stream,
                                .memory = has_device ? device_ : nullptr};
    return put(op, [&]() -> Result<TensorEntry> {
      const Faults before = device_->faults();
      if (op.malloc_fail) fail_allocations(*op.malloc_fail);
      auto made = probe()([&] { return make_(options, quirks_); });
      if (made) return TensorEntry{std::move(*made), has_device};
      device_->set_faults(before);
      return made.error();
    });
  }
  Status operator()(const UpdateTensor& op) {
    const auto to = caches_.at(op.cache.value_or(0));
    if (!to) return to.error();
    auto rows = rows_of(op);
    if (!rows) return rows.error();
    const bool k_on_gpu = op.k_device == Place::kGpu && op.k.has_value();
    const bool v_on_gpu = op.v_device == Place::kGpu && op.v.has_value();
    if ((k_on_gpu || v_on_gpu) && !(*to)->has_device)
      return fail(Code::kPrecondition, "the engine has no device");
    const Source k = k_on_gpu ? Source(*device_, Where::kKSource, op.k->bytes) : Source();
    const Source v = v_on_gpu ? Source(*device_, Where::kVSource, op.v->bytes) : Source();
    rows->k_device = k.ptr();
    rows->v_device = v.ptr();
    return probe()([&] { return (*to)->cache->update(op.layer, *rows); });
  }
  Result<Found> operator()(const GetFullBuffer& op) {
    return found_by(&TensorBacked::full_buffer, op);
  }
  Result<Counters::Returns> operator()(const Counters& op) {
    const auto cache = cache_of(op);
    if (!cache) return cache.error();
    const CounterPtrs seen = probe()([&] { return (*cache)->counters(); });
    return Counters::Returns{read(seen.gpu_counter), read(seen.kv_seq_len)};
  }
  Status operator()(const InjectTensor& op) {
    if (op.malloc_fail) fail_allocations(*op.malloc_fail);
    Faults faults = device_->faults();
    faults.kernel = op.kernel_fail_at.value_or(0);
    device_->set_faults(faults);
    return {};
  }

 private:
  void fail_allocations(std::int64_t n) {
    Faults faults = device_->faults();
    faults.next_allocs = n;
    device_->set_faults(faults);
  }
  // What the device below answers is answered by the session.
  Nullable<std::int64_t> read(DevicePtr counter) {
    if (!counter) return {};
    std::int32_t value = 0;
    const auto cell = std::as_writable_bytes(std::span(&value, 1));
    demand(device_->below().to_host(cell, counter));
    return std::int64_t{value};
  }

  MakeTensor make_;
  QuirkSet<Quirk> quirks_;
  std::shared_ptr<RecordedDevice> device_;
};

}  // namespace

const CacheKind& tensor_kind() {
  static constexpr auto kRows = rows_of(kQuirkRows, kTensorQuirks);
  static const CacheKind kKind{
      .contract = "provider",
      .cache = "tensor",
      .doc = "layers on the host or the device, fp32 or fp16, with counters (zerfoo TensorCache)",
      .operations = op_kinds(TensorOps()),
      .config = &type_of<TensorConfig>(),
      .quirks = kRows};
  return kKind;
}

Subject make_tensor_subject(std::string variant, std::string doc, MakeTensor make,
                            OpenDevice make_memory) {
  return subject_of<Quirk>(
      tensor_kind(), std::move(variant), std::move(doc),
      [make = std::move(make), make_memory = std::move(make_memory)](
          const Setup& /*setup*/, QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<Session>> {
        auto memory = make_memory();
        if (!memory) return memory.error();
        return std::make_unique<TensorSession>(make, quirks, std::move(*memory));
      },
      kQuirkRows);
}

}  // namespace kvo::provider

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_TENSOR_OPERATIONS)
}  // namespace kvo
