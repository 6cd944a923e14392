#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;
  Status do_start_forward(const positional::Batch& batch) override {
    positional::Batch real = batch;
    real.reserve = false;
    return CausalCache::do_start_forward(real);
  }
};

}  // namespace

Mutant positional_reserve_inserts() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kCausal, "reserve_inserts",
                                           "a reserve pass takes cells for its batch", "B025, F03");
}

}  // namespace kvo
