#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  [[nodiscard]] Result<provider::PointerArrays> pointer_arrays() override {
    auto made = DeviceCache::pointer_arrays();
    if (made) std::swap(made->k, made->v);
    return made;
  }
};

}  // namespace

Mutant device_pointer_arrays_swapped() {
  return provider::device_mutant<Faulty>("pointer_arrays_swapped",
                                         "the pointer arrays of K and V are exchanged", "F09");
}

}  // namespace kvo
