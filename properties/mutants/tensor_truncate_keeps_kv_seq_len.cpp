#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyTensor {
 public:
  using FaultyTensor::FaultyTensor;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    const std::int64_t before = held(kv_seq_len_);
    const Status done = TensorCache::truncate(n);
    put(kv_seq_len_, before);
    return done;
  }
};

}  // namespace

Mutant tensor_truncate_keeps_kv_seq_len() {
  return provider::tensor_mutant<Faulty>("truncate_keeps_kv_seq_len", "truncate forgets kv_seq_len",
                                         "B066, F07");
}

}  // namespace kvo
