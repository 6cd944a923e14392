#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;
  Status do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) override {
    return CausalCache::do_remove(sequence, begin, end < begin ? positional::kMaxPosition : end);
  }
};

}  // namespace

Mutant positional_inverted_range_to_the_end() {
  return positional::causal_mutant<Faulty>(
      positional::Flavour::kCausal, "inverted_range_to_the_end",
      "an end before the beginning is taken for \"to the end\"", "B034, F04");
}

}  // namespace kvo
