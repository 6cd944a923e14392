#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyDevice {
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

Mutant device_sync_ignored() {
  return provider::device_mutant<Faulty>("sync_ignored", "the length never follows the counter",
                                         "B029, F04");
}

}  // namespace kvo
