#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override {
    if (rows.k == nullptr || rows.v == nullptr || rows.k->shape.size() != 3 ||
        rows.v->shape != rows.k->shape)
      return PagedCache::update(layer, rows);
    const Tensor v = provider::swapped_axes(*rows.v);
    return PagedCache::update(layer, {.k = rows.k, .v = &v});
  }
};

}  // namespace

Mutant paged_values_channel_minor() {
  return provider::paged_mutant<Faulty>("values_channel_minor",
                                        "V is read with the strides of [position, channel, dim]",
                                        "B081, F09");
}

}  // namespace kvo
