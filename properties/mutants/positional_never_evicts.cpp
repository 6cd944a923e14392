#include <algorithm>

#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] std::int64_t kept_from(const Cells& held, std::int64_t sequence,
                                       std::optional<std::int32_t> low) const override {
    return std::min<std::int64_t>(0, CausalCache::kept_from(held, sequence, low));
  }
};

}  // namespace

Mutant positional_never_evicts() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kSwa, "never_evicts",
                                           "eviction stands behind a condition that never holds",
                                           "B009, F01");
}

}  // namespace kvo
