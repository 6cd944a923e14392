#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  void reset() override {
    const provider::DevicePtr counter = std::exchange(counter_, {});
    DeviceCache::reset();
    counter_ = counter;
  }
};

}  // namespace

Mutant device_reset_keeps_counter() {
  return provider::device_mutant<Faulty>("reset_keeps_counter", "reset forgets the counter",
                                         "B066, F07");
}

}  // namespace kvo
