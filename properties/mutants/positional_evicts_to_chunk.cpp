#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] std::int64_t kept_from(const Cells& held, std::int64_t sequence,
                                       std::optional<std::int32_t> low) const override {
    if (!low) return CausalCache::kept_from(held, sequence, low);
    return *low - *low % memory();
  }
};

}  // namespace

Mutant positional_evicts_to_chunk() {
  return positional::causal_mutant<Faulty>(
      positional::Flavour::kSwaMem, "evicts_to_chunk",
      "everything before the current chunk of memory is evicted", "B006, F01");
}

}  // namespace kvo
