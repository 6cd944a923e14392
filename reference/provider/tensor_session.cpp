// How operations of `provider.tensor` reach a cache.

#include "reference/contract/device/recorded_device.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/values/thrown.hpp"
#include "reference/provider/tensor_operations.hpp"

namespace kvo::provider {
namespace {

using Source = RecordedDevice::Source;
using Where = ShownPtr::Where;

class TensorSession final : public DispatchSession<TensorSession, TensorOps, SharedOps> {
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
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return caches_.broken_invariant();
  }

  using SharedOps::operator();
  Status operator()(const NewTensor& op) {
    const std::int64_t number = op.cache.value_or(0);
    if (!caches_.may_have(number)) return no_cache(op.cache);
    const TensorOptions options{.num_layers = op.num_layers,
                                .max_seq_len = op.max_seq_len,
                                .dtype = op.dtype,
                                .stream = op.stream,
                                .memory = op.device == Place::kGpu ? device_ : nullptr};
    const Faults before = device_->faults();
    if (op.malloc_fail) fail_allocations(*op.malloc_fail);
    auto made = probe()([&] { return make_(options, quirks_); });
    if (!made) {
      device_->set_faults(before);
      return made.error();
    }
    caches_.put(number, {std::move(*made), op.device == Place::kGpu});
    return {};
  }
  Status operator()(const UpdateTensor& op) {
    const Made* made = caches_.find(op.cache.value_or(0));
    if (made == nullptr) return no_cache(op.cache);
    for (const auto* tensor : {&op.k, &op.v})
      if (tensor->has_value() && (*tensor)->dtype != DType::kF32)
        return fail(Code::kPrecondition, "dtype");
    const bool k_on_gpu = op.k_device == Place::kGpu && op.k.has_value();
    const bool v_on_gpu = op.v_device == Place::kGpu && op.v.has_value();
    if ((k_on_gpu || v_on_gpu) && !made->has_device)
      return fail(Code::kPrecondition, "the engine has no device");
    const Source k = k_on_gpu ? Source(*device_, Where::kKSource, op.k->bytes) : Source();
    const Source v = v_on_gpu ? Source(*device_, Where::kVSource, op.v->bytes) : Source();
    const Rows rows{.k = op.k.has_value() ? &*op.k : nullptr,
                    .v = op.v.has_value() ? &*op.v : nullptr,
                    .k_device = k.ptr(),
                    .v_device = v.ptr()};
    return probe()([&] { return made->cache->update(op.layer, rows); });
  }
  Result<Found> operator()(const GetFullBuffer& op) {
    TensorBacked* cache = tensor(op.cache);
    if (cache == nullptr) return no_cache(op.cache);
    const auto pair = probe()([&] { return cache->full_buffer(op.layer); });
    if (!pair) return pair.error();
    return show(*pair, op.keep.value_or(true));
  }
  Result<Counters::Returns> operator()(const Counters& op) {
    TensorBacked* cache = tensor(op.cache);
    if (cache == nullptr) return no_cache(op.cache);
    const CounterPtrs seen = probe()([&] { return cache->counters(); });
    return Counters::Returns{read(seen.gpu_counter), read(seen.kv_seq_len)};
  }
  Status operator()(const SyncTensorCounter& op) {
    TensorBacked* cache = tensor(op.cache);
    if (cache == nullptr) return no_cache(op.cache);
    return probe()([&] { return cache->sync_counter(); });
  }
  Status operator()(const FreeTensor& op) {
    TensorBacked* cache = tensor(op.cache);
    if (cache == nullptr) return no_cache(op.cache);
    probe()([&] { cache->free(); });
    return {};
  }
  Result<Number> operator()(const MaxSeqLen& op) {
    TensorBacked* cache = tensor(op.cache);
    if (cache == nullptr) return no_cache(op.cache);
    return Number{probe()([&] { return cache->max_seq_len(); })};
  }
  Status operator()(const InjectTensor& op) {
    if (op.malloc_fail) fail_allocations(*op.malloc_fail);
    Faults faults = device_->faults();
    faults.kernel = op.kernel_fail_at.value_or(0);
    device_->set_faults(faults);
    return {};
  }

 private:
  struct Made {
    std::unique_ptr<TensorBacked> cache;
    bool has_device = false;
    TensorBacked* operator->() const { return cache.get(); }
  };

  TensorBacked* tensor(const std::optional<std::int64_t>& cache) {
    const Made* found = caches_.find(cache.value_or(0));
    return found != nullptr ? found->cache.get() : nullptr;
  }
  using SharedOps::find;
  Provider* find(std::int64_t cache) override { return tensor(cache); }
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
  NumberedCaches<Made> caches_;
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
  return {.kind = &tensor_kind(),
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [make = std::move(make), make_memory = std::move(make_memory)](
                      const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
            if (!quirks) return quirks.error();
            auto memory = make_memory();
            if (!memory) return memory.error();
            return std::make_unique<TensorSession>(make, *quirks, std::move(*memory));
          }};
}

}  // namespace kvo::provider

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_TENSOR_OPERATIONS)
}  // namespace kvo
