#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  [[nodiscard]] Status append_gpu(std::int64_t layer, provider::DevicePtr k,
                                  provider::DevicePtr v) override {
    const Status done = DeviceCache::append_gpu(layer, k, v);
    if (!done || layer + 1 == std::ssize(layers_)) return done;
    return memory_->increment_counter(counter_, 1);
  }
};

}  // namespace

Mutant device_every_layer_counts() {
  return provider::device_mutant<Faulty>(
      "every_layer_counts", "a decode step of any layer moves the counter", "B065, F07");
}

}  // namespace kvo
