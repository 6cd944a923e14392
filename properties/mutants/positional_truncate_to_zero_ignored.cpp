#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;
  Status do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) override {
    if (begin == 0 && end == positional::kMaxPosition) return {};
    return CausalCache::do_remove(sequence, begin, end);
  }
};

}  // namespace

Mutant positional_truncate_to_zero_ignored() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kCausal, "truncate_to_zero_ignored",
                                           "removing everything removes nothing", "B026, F04");
}

}  // namespace kvo
