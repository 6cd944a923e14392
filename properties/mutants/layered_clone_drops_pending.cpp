#include <algorithm>

#include "properties/mutants/layered_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public layered::FaultyCache<Faulty> {
 public:
  using FaultyCache::FaultyCache;
  [[nodiscard]] std::unique_ptr<layered::Cache> clone() const override {
    auto copy = std::make_unique<Faulty>(*this);
    for (Layer& layer : copy->layers_) {
      const std::size_t entry = geometry_.num_kv_heads * geometry_.head_dim;
      const std::size_t kept = std::min(layer.k.size(), entry * len_);
      layer.k.resize(kept);
      layer.v.resize(std::min(layer.v.size(), kept));
    }
    return copy;
  }
};

}  // namespace

Mutant layered_clone_drops_pending() {
  return layered::mutant_of<Faulty>(
      "clone_drops_pending", "a clone lacks the rows that were not yet advanced", "B030, F04");
}

}  // namespace kvo
