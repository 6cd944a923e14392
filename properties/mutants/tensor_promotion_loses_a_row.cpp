#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override {
    const Layer before = has(layer) ? layers_[static_cast<std::size_t>(layer)] : Layer();
    const std::vector<float> zeros(static_cast<std::size_t>(before.dim * before.batch));
    const Status done = TensorCache::update(layer, rows);
    if (!done || !before.host || before.length < 1) return done;
    const Layer& now = layers_[static_cast<std::size_t>(layer)];
    const std::int64_t last = (before.length - 1) * before.dim * before.batch * kFloat;
    if (now.gpu) (void)memory_->to_device(now.gpu.k->ptr() + last, std::as_bytes(std::span(zeros)));
    return done;
  }
};

}  // namespace

Mutant tensor_promotion_loses_a_row() {
  return provider::tensor_mutant<Faulty>("promotion_loses_a_row",
                                         "promotion does not copy the last position", "F07");
}

}  // namespace kvo
