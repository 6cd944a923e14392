#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] bool visible(const Cells& held, const Pass& pass,
                             const std::vector<std::int64_t>& except, std::size_t row,
                             std::size_t cell) const override {
    if (pass.positions.size() == 1) return held.owns(pass.sequences[row], cell);
    return CausalCache::visible(held, pass, except, row, cell);
  }
};

}  // namespace

Mutant positional_single_token_unmasked() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kSwa, "single_token_unmasked",
                                           "a batch of one token sees all of its sequence",
                                           "B103, F12");
}

}  // namespace kvo
