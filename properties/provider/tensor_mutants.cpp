#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "properties/contract_parts.hpp"
#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/jobs.hpp"
#include "reference/provider/tensor_cache.hpp"
#include "reference/provider/tensor_operations.hpp"

namespace kvo::provider {
namespace {

/// Base of faulty caches: takes over a sound one.
class FaultyTensor : public TensorCache {
 public:
  explicit FaultyTensor(TensorCache&& sound) : TensorCache(std::move(sound)) {}

 protected:
  /// What a counter holds; 0 without it.
  [[nodiscard]] std::int64_t held(const Buffer& counter) const {
    if (!counter) return 0;
    const auto value = read_counter(*memory_, counter->ptr());
    return value ? *value : 0;
  }
  /// Sets a counter beside the record: a copy that fails is not seen.
  void put(const Buffer& counter, std::int64_t value) const { (void)set(counter, value); }
};

/// A mutant whose caches are `Faulty`, a FaultyTensor with one method done wrong.
template <class Faulty>
Mutant tensor_mutant(const std::string& name, std::string_view fault, std::string_view origin,
                     std::optional<Profile> profile = std::nullopt) {
  const auto make = [](const TensorOptions& options,
                       QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<TensorBacked>> {
    auto sound = TensorCache::make(options, quirks);
    if (!sound) return sound.error();
    return std::make_unique<Faulty>(static_cast<TensorCache&&>(**sound));
  };
  return {
      .subject = make_tensor_subject("mutant:" + name, std::string(fault), make, HostDevice::make),
      .fault = std::string(fault),
      .origin = std::string(origin),
      .profile = profile};
}

/// Puts gpu_counter back after a prefill.
class PrefillKeepsCounter final : public FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    const std::int64_t before = held(gpu_counter_);
    const Status done = TensorCache::update(layer, rows);
    if (done && rows.k->shape[1] > 1) put(gpu_counter_, before);
    return done;
  }
};

/// Puts gpu_counter back after a truncate.
class TruncateKeepsGpuCounter final : public FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    const std::int64_t before = held(gpu_counter_);
    const Status done = TensorCache::truncate(n);
    put(gpu_counter_, before);
    return done;
  }
};

/// Puts kv_seq_len back after a truncate.
class TruncateKeepsKvSeqLen final : public FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    const std::int64_t before = held(kv_seq_len_);
    const Status done = TensorCache::truncate(n);
    put(kv_seq_len_, before);
    return done;
  }
};

/// Sets both counters to min(n, length).
class TruncateClampsCounters final : public FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    const Status done = TensorCache::truncate(n);
    put(gpu_counter_, std::min(n, layers_.empty() ? 0 : layers_.back().length));
    put(kv_seq_len_, std::min(n, seq_len()));
    return done;
  }
};

/// Takes a truncate of the device for a reset.
class TruncateResetsDevice final : public FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    const Status done = TensorCache::truncate(n);
    for (Layer& layer : layers_)
      if (layer.gpu) layer.length = std::min<std::int64_t>(layer.length, 0);
    return done;
  }
};

/// Increments gpu_counter before the last layer, too.
class EveryLayerCounts final : public FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    const Status done = TensorCache::update(layer, rows);
    if (done && rows.k->shape[1] == 1 && layer + 1 < std::ssize(layers_))
      put(gpu_counter_, held(gpu_counter_) + 1);
    return done;
  }
};

/// Moves the length whatever the kernel says.
class FailedStepCounts final : public FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    const Status done = TensorCache::update(layer, rows);
    if (!done && done.error().reason == "kernel_failed")
      ++layers_[static_cast<std::size_t>(layer)].length;
    return done;
  }
};

/// Clears the last position of K on the device.
class PromotionLosesARow final : public FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    const Layer before = find(layer) != nullptr ? *find(layer) : Layer();
    const std::vector<float> zeros(static_cast<std::size_t>(before.dim * before.batch));
    const Status done = TensorCache::update(layer, rows);
    if (!done || !before.buffers[0] || before.gpu || before.length < 1) return done;
    const Layer& now = layers_[static_cast<std::size_t>(layer)];
    const std::int64_t last = (before.length - 1) * before.dim * before.batch * kFloat;
    if (now.gpu)
      (void)memory_->to_device(now.buffers[0]->ptr() + last, std::as_bytes(std::span(zeros)));
    return done;
  }
};

/// Frees the scratch buffers at the start of a query.
class ScratchFreedEarly final : public FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override {
    for (const Buffer& buffer : scratch_)
      if (buffer) buffer->release();
    scratch_ = {};
    return TensorCache::get(layer);
  }
};

}  // namespace

std::vector<Mutant> tensor_mutants() {
  return {
      tensor_mutant<PrefillKeepsCounter>(
          "prefill_keeps_counter", "gpu_counter stays behind after an update of several positions",
          "B065, F07: zerfoo's counter on the device stayed 0 after a prefill, so decoding wrote "
          "at position 0"),
      tensor_mutant<TruncateKeepsGpuCounter>("truncate_keeps_gpu_counter",
                                             "truncate forgets gpu_counter",
                                             "B066, F07: zerfoo's truncate rolled back the host "
                                             "and forgot the counters on the device"),
      tensor_mutant<TruncateKeepsKvSeqLen>("truncate_keeps_kv_seq_len",
                                           "truncate forgets kv_seq_len",
                                           "B066, F07: zerfoo's truncate rolled back the host and "
                                           "forgot the counters on the device"),
      tensor_mutant<TruncateClampsCounters>(
          "truncate_clamps_counters", "truncate never raises the counters above the lengths",
          "Z6, F04: zerfoo clamps only the host's length; the counters become n, whatever it is"),
      tensor_mutant<TruncateResetsDevice>(
          "truncate_resets_device", "truncate empties the layers on the device",
          "B038, F04: aprender reset the length on the device to 0 instead of rolling it back"),
      tensor_mutant<EveryLayerCounts>("every_layer_counts",
                                      "a decode step of any layer moves gpu_counter",
                                      "B065, F07: zerfoo's counter on the device stayed 0 after a "
                                      "prefill, so decoding wrote at position 0"),
      tensor_mutant<FailedStepCounts>(
          "failed_step_counts", "a decode step counts although its kernel failed",
          "B029, F04: the counters of sglang-jax never advanced in speculative decoding"),
      tensor_mutant<PromotionLosesARow>("promotion_loses_a_row",
                                        "promotion does not copy the last position",
                                        "F07: host and device disagree about what is stored"),
      tensor_mutant<ScratchFreedEarly>(
          "scratch_freed_early", "each fp16 query frees the results of the one before",
          "B067, F07: zerfoo freed an fp16 buffer before the copy from it was done",
          Profile::kOriginal),  // documented results have memory of their own
  };
}

}  // namespace kvo::provider
