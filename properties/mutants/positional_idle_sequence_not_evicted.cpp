#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] std::int64_t kept_from(const Cells& held, std::int64_t sequence,
                                       std::optional<std::int32_t> low) const override {
    if (!low) return 0;
    return CausalCache::kept_from(held, sequence, low);
  }
};

}  // namespace

Mutant positional_idle_sequence_not_evicted() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kSwa, "idle_sequence_not_evicted",
                                           "only sequences of the batch are evicted from",
                                           "B001, F01");
}

}  // namespace kvo
