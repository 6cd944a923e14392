#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override {
    auto pair = ContiguousCache::get(layer);
    if (!pair || !*pair) return pair;
    const Layer& from = layers_[static_cast<std::size_t>(layer)];
    return provider::KvPair{{(*pair)->k.shape, from.k}, {(*pair)->v.shape, from.v}};
  }
};

}  // namespace

Mutant contiguous_batch_as_view() {
  return provider::contiguous_mutant<Faulty>(
      "batch_as_view", "several rows are shown as if they lay end to end in the buffer",
      "B081, F09");
}

}  // namespace kvo
