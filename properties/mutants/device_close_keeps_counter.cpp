#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  [[nodiscard]] Status close() override {
    counter_ = {};
    return DeviceCache::close();
  }
};

}  // namespace

Mutant device_close_keeps_counter() {
  return provider::device_mutant<Faulty>("close_keeps_counter", "close forgets to free the counter",
                                         "F07");
}

}  // namespace kvo
