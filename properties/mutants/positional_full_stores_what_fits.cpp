#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;
  Status do_start_forward(const positional::Batch& batch) override {
    Status done = CausalCache::do_start_forward(batch);
    if (done || done.error().code != Code::kFull) return done;
    const auto room = free_cells(cells(), batch.positions.size()).size();
    if (room > 0)
      (void)CausalCache::do_start_forward(
          {.positions = batch.positions.first(room), .sequences = batch.sequences.first(room)});
    return done;
  }
};

}  // namespace

Mutant positional_full_stores_what_fits() {
  return positional::causal_mutant<Faulty>(
      positional::Flavour::kCausal, "full_stores_what_fits",
      "of a batch that does not fit, the first tokens are stored", "B035, F04");
}

}  // namespace kvo
