#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    const std::int64_t before = held(gpu_counter_);
    const Status done = TensorCache::truncate(n);
    put(gpu_counter_, before);
    return done;
  }
};

}  // namespace

Mutant tensor_truncate_keeps_gpu_counter() {
  return provider::tensor_mutant<Faulty>("truncate_keeps_gpu_counter",
                                         "truncate forgets gpu_counter", "B066, F07");
}

}  // namespace kvo
