#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] bool visible(const Look& look) const override {
    if (look.pass.positions.size() == 1) return look.owned();
    return CausalCache::visible(look);
  }
};

}  // namespace

Mutant positional_single_token_unmasked() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kSwa, "single_token_unmasked",
                                           "a batch of one token sees all of its sequence",
                                           "B103, F12");
}

}  // namespace kvo
