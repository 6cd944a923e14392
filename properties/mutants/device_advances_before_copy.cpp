#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  [[nodiscard]] Status append(std::int64_t layer, std::span<const float> k,
                              std::span<const float> v, std::int64_t pos) override {
    const Status done = DeviceCache::append(layer, k, v, pos);
    if (!done && done.error().reason == "memcpy_failed") advance(layer);
    return done;
  }
};

}  // namespace

Mutant device_advances_before_copy() {
  return provider::device_mutant<Faulty>(
      "advances_before_copy", "the length moves before the copy, and stays when that fails",
      "B033, F07");
}

}  // namespace kvo
