#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] bool resumable(const Cells& held, std::int64_t sequence,
                               std::int64_t position) const override {
    const std::int64_t last = held.last_position(sequence);
    if (bounded() && last >= window() && position <= last) return false;
    return CausalCache::resumable(held, sequence, position);
  }
};

}  // namespace

Mutant positional_resume_refused_once_full() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kSwa, "resume_refused_once_full",
                                           "once the window was filled every step back is refused",
                                           "B037, F04");
}

}  // namespace kvo
