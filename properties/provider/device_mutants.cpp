#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "properties/contract_parts.hpp"
#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/jobs.hpp"
#include "reference/provider/device_cache.hpp"
#include "reference/provider/device_operations.hpp"

namespace kvo::provider {
namespace {

/// Base of faulty caches: takes over a sound one, and knows what it was made of.
class FaultyDevice : public DeviceCache {
 public:
  FaultyDevice(DeviceCache&& sound, const DeviceOptions& options)
      : DeviceCache(std::move(sound)), options_(options) {}

 protected:
  DeviceOptions options_;
};

/// A mutant whose caches are `Faulty`, a FaultyDevice with one method done wrong.
template <class Faulty>
Mutant device_mutant(const std::string& name, std::string_view fault, std::string_view origin,
                     std::optional<Profile> profile = std::nullopt) {
  const auto make = [](const DeviceOptions& options,
                       QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<DeviceKv>> {
    auto sound = DeviceCache::make(options, quirks);
    if (!sound) return sound.error();
    return std::make_unique<Faulty>(static_cast<DeviceCache&&>(**sound), options);
  };
  return {
      .subject = make_device_subject("mutant:" + name, std::string(fault), make, HostDevice::make),
      .fault = std::string(fault),
      .origin = std::string(origin),
      .profile = profile};
}

/// Leaves the heads out of the stride between positions.
class HeadsForgotten final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  [[nodiscard]] Status append(std::int64_t layer, std::span<const float> k,
                              std::span<const float> v, std::int64_t pos) override {
    const bool refused = !has(layer) || pos != length_ || pos >= max_seq_len_ ||
                         std::ssize(k) != width_ || std::ssize(v) != width_ || closed_;
    if (refused) return DeviceCache::append(layer, k, v, pos);
    const Layer& to = layers_[static_cast<std::size_t>(layer)];
    const auto offset = pos * options_.head_dim * static_cast<std::int64_t>(sizeof(float));
    if (const Status done = memory_->to_device(to.k + offset, std::as_bytes(k)); !done) return done;
    if (const Status done = memory_->to_device(to.v + offset, std::as_bytes(v)); !done) return done;
    advance(layer);
    return {};
  }
};

/// Moves the length although the copy has failed.
class AdvancesBeforeCopy final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  [[nodiscard]] Status append(std::int64_t layer, std::span<const float> k,
                              std::span<const float> v, std::int64_t pos) override {
    const Status done = DeviceCache::append(layer, k, v, pos);
    if (!done && done.error().reason == "memcpy_failed") advance(layer);
    return done;
  }
};

/// Increments the counter before the last layer, too.
class EveryLayerCounts final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  [[nodiscard]] Status append_gpu(std::int64_t layer, DevicePtr k, DevicePtr v) override {
    const Status done = DeviceCache::append_gpu(layer, k, v);
    if (!done || layer + 1 == std::ssize(layers_)) return done;
    return memory_->run(IncrementJob{counter_.as<std::int32_t>(), 1});
  }
};

/// Gives K where V is asked for.
class PointerArraysSwapped final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  [[nodiscard]] Result<PointerArrays> pointer_arrays() override {
    auto made = DeviceCache::pointer_arrays();
    if (made) std::swap(made->k, made->v);
    return made;
  }
};

/// Drops the counter before all is freed.
class CloseKeepsCounter final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  [[nodiscard]] Status close() override {
    counter_ = {};
    return DeviceCache::close();
  }
};

/// Hides the counter from reset.
class ResetKeepsCounter final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  void reset() override {
    const DevicePtr counter = std::exchange(counter_, {});
    DeviceCache::reset();
    counter_ = counter;
  }
};

/// Puts the length back after it was read from the device.
class SyncIgnored final : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  [[nodiscard]] Status sync_counter() override {
    const std::int64_t before = length_;
    const Status done = DeviceCache::sync_counter();
    length_ = before;
    return done;
  }
};

}  // namespace

std::vector<Mutant> device_mutants() {
  return {
      device_mutant<HeadsForgotten>("heads_forgotten", "rows are put at position * head_dim",
                                    "F09: a stride without one of its factors, as in B081"),
      device_mutant<AdvancesBeforeCopy>(
          "advances_before_copy", "the length moves before the copy, and stays when that fails",
          "B033, F07: a cancelled prefill left Ollama's target caches one token past the draft "
          "caches"),
      device_mutant<EveryLayerCounts>("every_layer_counts",
                                      "a decode step of any layer moves the counter",
                                      "B065, F07: zerfoo's counter on the device stayed 0 after a "
                                      "prefill, so decoding wrote at position 0"),
      device_mutant<PointerArraysSwapped>("pointer_arrays_swapped",
                                          "the pointer arrays of K and V are exchanged",
                                          "F09: the two sides of a layout exchanged, as in B086"),
      device_mutant<CloseKeepsCounter>("close_keeps_counter", "close forgets to free the counter",
                                       "F07: the counter outlives the cache it belongs to"),
      device_mutant<ResetKeepsCounter>("reset_keeps_counter", "reset forgets the counter",
                                       "B066, F07: zerfoo's truncate rolled back the host and "
                                       "forgot the counters on the device"),
      device_mutant<SyncIgnored>(
          "sync_ignored", "the length never follows the counter",
          "B029, F04: the counters of sglang-jax never advanced in speculative decoding",
          Profile::kOriginal),  // documented, length and counter never part
  };
}

}  // namespace kvo::provider
