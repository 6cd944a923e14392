// properties/mutants/device_mutant.hpp: how mutants of provider.tensor and provider.device are
// made.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "properties/mutants/mutants.hpp"
#include "reference/provider/device_cache.hpp"
#include "reference/provider/host_device.hpp"
#include "reference/provider/tensor_cache.hpp"

namespace kvo::provider {

/// Base of faulty caches: takes over a sound one.
class FaultyTensor : public TensorCache {
 public:
  explicit FaultyTensor(TensorCache&& sound) : TensorCache(std::move(sound)) {}

 protected:
  /// What a counter holds; 0 without it.
  [[nodiscard]] std::int64_t held(const std::shared_ptr<DeviceStorage>& counter) const {
    if (!counter) return 0;
    const auto value = read_counter(*counter);
    return value ? *value : 0;
  }
  /// Sets a counter beside the record: a copy that fails is not seen.
  void put(const std::shared_ptr<DeviceStorage>& counter, std::int64_t value) const {
    (void)set_counter(counter, value);
  }
};

/// Base of faulty caches: takes over a sound one, and knows what it was made of.
class FaultyDevice : public DeviceCache {
 public:
  FaultyDevice(DeviceCache&& sound, const DeviceSetup& setup)
      : DeviceCache(std::move(sound)), setup_(setup) {}

 protected:
  DeviceSetup setup_;
};

/// A mutant whose caches are `Faulty`, a FaultyTensor with one method done wrong.
template <class Faulty>
Mutant tensor_mutant(const std::string& name, std::string_view fault, std::string_view origin) {
  const auto make = [](const TensorSetup& setup,
                       Profile profile) -> Result<std::unique_ptr<TensorBacked>> {
    auto sound = TensorCache::make(setup, profile);
    if (!sound) return sound.error();
    return std::make_unique<Faulty>(static_cast<TensorCache&&>(**sound));
  };
  return {
      .subject = make_tensor_subject("mutant:" + name, std::string(fault), make, HostDevice::make),
      .fault = fault,
      .origin = origin};
}

/// A mutant whose caches are `Faulty`, a FaultyDevice with one method done wrong.
template <class Faulty>
Mutant device_mutant(const std::string& name, std::string_view fault, std::string_view origin) {
  const auto make = [](const DeviceSetup& setup,
                       Profile profile) -> Result<std::unique_ptr<DeviceKv>> {
    auto sound = DeviceCache::make(setup, profile);
    if (!sound) return sound.error();
    return std::make_unique<Faulty>(static_cast<DeviceCache&&>(**sound), setup);
  };
  return {
      .subject = make_device_subject("mutant:" + name, std::string(fault), make, HostDevice::make),
      .fault = fault,
      .origin = origin};
}

}  // namespace kvo::provider
