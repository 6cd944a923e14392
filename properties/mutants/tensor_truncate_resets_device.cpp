#include <algorithm>

#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    const Status done = TensorCache::truncate(n);
    for (Layer& layer : layers_)
      if (layer.gpu) layer.length = std::min<std::int64_t>(layer.length, 0);
    return done;
  }
};

}  // namespace

Mutant tensor_truncate_resets_device() {
  return provider::tensor_mutant<Faulty>("truncate_resets_device",
                                         "truncate empties the layers on the device", "B038, F04");
}

}  // namespace kvo
