#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;
  Status do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) override {
    return CausalCache::do_remove(sequence, end == positional::kMaxPosition ? begin + 1 : begin,
                                  end);
  }
};

}  // namespace

Mutant positional_rollback_keeps_one() {
  return positional::causal_mutant<Faulty>(
      positional::Flavour::kCausal, "rollback_keeps_one",
      "a removal to the end leaves the first token of the range", "B031, F04");
}

}  // namespace kvo
