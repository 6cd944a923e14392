#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override {
    if (rows.k == nullptr || rows.v == nullptr || rows.k->shape.size() != 3 ||
        rows.k->shape[0] != rows.k->shape[1] || rows.v->shape != rows.k->shape)
      return ContiguousCache::update(layer, rows);
    const Tensor k = provider::swapped_axes(*rows.k);
    const Tensor v = provider::swapped_axes(*rows.v);
    return ContiguousCache::update(layer, {.k = &k, .v = &v});
  }
};

}  // namespace

Mutant contiguous_axes_swapped() {
  return provider::contiguous_mutant<Faulty>(
      "axes_swapped",
      "rows whose batch equals their positions are taken for [position, batch, dim]", "B086, F09");
}

}  // namespace kvo
