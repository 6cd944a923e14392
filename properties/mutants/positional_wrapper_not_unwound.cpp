#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::WrapperCache {
 public:
  using WrapperCache::WrapperCache;

 protected:
  [[nodiscard]] Changes started(const positional::Batch& batch) const override {
    Changes changes = asked([&](const auto& cache) { return cache.started(batch); });
    if (changes.kept_by) changes.kept_by = positional::Quirk::kStartHalfUnwound;
    return changes;
  }
};

}  // namespace

Mutant positional_wrapper_not_unwound() {
  return positional::wrapper_mutant<Faulty>(
      "not_unwound", "members before the one that is full keep the batch", "B033, F04");
}

}  // namespace kvo
