#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] bool resumable(const Cells& held, std::int64_t sequence,
                               std::int64_t position) const override {
    const std::int64_t last = held.last_position(sequence);
    if (!bounded() || last < 0) return CausalCache::resumable(held, sequence, position);
    return position <= last + 1;
  }
};

}  // namespace

Mutant positional_resume_into_evicted() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kSwa, "resume_into_evicted",
                                           "may resume anywhere up to the end, evicted or not",
                                           "B002, F01");
}

}  // namespace kvo
