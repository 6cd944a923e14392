#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override {
    if (scratch_) {
      scratch_.k->release();
      scratch_.v->release();
    }
    scratch_ = {};
    return TensorCache::get(layer);
  }
};

}  // namespace

Mutant tensor_scratch_freed_early() {
  return provider::tensor_mutant<Faulty>(
      "scratch_freed_early", "each fp16 query frees the results of the one before", "B067, F07");
}

}  // namespace kvo
