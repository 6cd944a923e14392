#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;
  Status do_start_forward(const positional::Batch& batch) override {
    (void)CausalCache::do_set_layer(0);
    return CausalCache::do_start_forward(batch);
  }
};

}  // namespace

Mutant positional_start_resets_layer() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kCausal, "start_resets_layer",
                                           "the layer falls back to 0 with each pass", "B023, F03");
}

}  // namespace kvo
