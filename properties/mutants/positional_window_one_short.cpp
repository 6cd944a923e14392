#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] bool visible(const Look& look) const override {
    return CausalCache::visible(look) && look.seen() > look.own() - window();
  }
};

}  // namespace

Mutant positional_window_one_short() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kSwa, "window_one_short",
                                           "a token sees one position less than its window",
                                           "B003, F01");
}

}  // namespace kvo
