#include <algorithm>

#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    const Status done = TensorCache::truncate(n);
    put(gpu_counter_, std::min(n, last_length()));
    put(kv_seq_len_, std::min(n, first_length()));
    return done;
  }
};

}  // namespace

Mutant tensor_truncate_clamps_counters() {
  return provider::tensor_mutant<Faulty>("truncate_clamps_counters",
                                         "truncate never raises the counters above the lengths",
                                         "Z6, F04");
}

}  // namespace kvo
