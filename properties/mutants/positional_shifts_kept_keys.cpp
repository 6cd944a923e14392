#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] std::int32_t offset_of(const Cells& held, std::int64_t sequence, std::size_t cell,
                                       std::int32_t begin, std::int32_t end) const override {
    const std::int32_t offset = CausalCache::offset_of(held, sequence, cell, begin, end);
    return held.owns(sequence, cell) ? begin - end : offset;
  }
};

}  // namespace

Mutant positional_shifts_kept_keys() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kCausal, "shifts_kept_keys",
                                           "keys before the removed range are moved, too",
                                           "B017, F03");
}

}  // namespace kvo
