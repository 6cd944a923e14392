#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::WrapperCache {
 public:
  using WrapperCache::WrapperCache;

 protected:
  [[nodiscard]] Changes started(const positional::Batch& batch) const override {
    Changes changes = asked([&](const auto& cache) { return cache.started(batch); });
    if (changes.outcome || !changes.kept_by || batch.positions.empty()) return changes;
    changes.kept_by = positional::Quirk::kStartHalfUnwound;
    const positional::Batch one{.positions = batch.positions.last(1),
                                .sequences = batch.sequences.last(1)};
    for (std::size_t i = 0; i + 1 < changes.members.size(); ++i) unwind(changes.members[i], one);
    return changes;
  }
};

}  // namespace

Mutant positional_wrapper_unwinds_one_token() {
  return positional::wrapper_mutant<Faulty>(
      "unwinds_one_token", "of a batch only the last token is taken back", "B033, F04");
}

}  // namespace kvo
