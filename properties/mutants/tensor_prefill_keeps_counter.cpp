#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override {
    const std::int64_t before = held(gpu_counter_);
    const Status done = TensorCache::update(layer, rows);
    if (done && rows.k->shape[1] > 1) put(gpu_counter_, before);
    return done;
  }
};

}  // namespace

Mutant tensor_prefill_keeps_counter() {
  return provider::tensor_mutant<Faulty>(
      "prefill_keeps_counter", "gpu_counter stays behind after an update of several positions",
      "B065, F07");
}

}  // namespace kvo
