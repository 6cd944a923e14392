#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] std::int32_t offset_of(const Cells& held, std::int64_t sequence, std::size_t cell,
                                       std::int32_t begin, std::int32_t end) const override {
    return sequence == 0 ? CausalCache::offset_of(held, sequence, cell, begin, end) : 0;
  }
};

}  // namespace

Mutant positional_shifts_first_sequence_only() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kCausal,
                                           "shifts_first_sequence_only",
                                           "only keys of sequence 0 are moved", "B019, F03");
}

}  // namespace kvo
