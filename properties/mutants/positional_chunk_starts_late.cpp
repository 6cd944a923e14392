#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] bool visible(const Look& look) const override {
    const std::int64_t own = look.own();
    return CausalCache::visible(look) &&
           (chunk() <= 0 || own % chunk() == 0 || look.seen() > own - own % chunk());
  }
};

}  // namespace

Mutant positional_chunk_starts_late() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kChunked, "chunk_starts_late",
                                           "a chunk begins one position late", "B106, F12");
}

}  // namespace kvo
