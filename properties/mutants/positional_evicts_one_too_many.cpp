#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] std::int64_t kept_from(const Cells& held, std::int64_t sequence,
                                       std::optional<std::int32_t> low) const override {
    return CausalCache::kept_from(held, sequence, low) + 1;
  }
};

}  // namespace

Mutant positional_evicts_one_too_many() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kSwa, "evicts_one_too_many",
                                           "the oldest position of the memory is evicted, too",
                                           "B005, F01");
}

}  // namespace kvo
