#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override {
    const Status done = TensorCache::update(layer, rows);
    if (!done && done.error().reason == "kernel_failed")
      ++layers_[static_cast<std::size_t>(layer)].length;
    return done;
  }
};

}  // namespace

Mutant tensor_failed_step_counts() {
  return provider::tensor_mutant<Faulty>(
      "failed_step_counts", "a decode step counts although its kernel failed", "B029, F04");
}

}  // namespace kvo
