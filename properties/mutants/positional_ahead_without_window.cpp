#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] bool visible(const Look& look) const override {
    return CausalCache::visible(look) || (look.ahead() && look.owned());
  }
};

}  // namespace

Mutant positional_ahead_without_window() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kSwa, "ahead_without_window",
                                           "rows that see ahead see behind their window, too",
                                           "B105, F12");
}

}  // namespace kvo
