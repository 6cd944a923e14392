#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override {
    const Status done = TensorCache::update(layer, rows);
    if (done && rows.k->shape[1] == 1 && layer + 1 < std::ssize(layers_))
      put(gpu_counter_, held(gpu_counter_) + 1);
    return done;
  }
};

}  // namespace

Mutant tensor_every_layer_counts() {
  return provider::tensor_mutant<Faulty>(
      "every_layer_counts", "a decode step of any layer moves gpu_counter", "B065, F07");
}

}  // namespace kvo
