#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override {
    if (has(layer) && rows.k != nullptr && rows.k->shape.size() == 3) {
      const Layer& to = layers_[static_cast<std::size_t>(layer)];
      if (to.k && rows.k->shape[1] > 0 && to.cursor + rows.k->shape[1] == max_seq_len_)
        return fail(Code::kFull);
    }
    return ContiguousCache::update(layer, rows);
  }
};

}  // namespace

Mutant contiguous_exactly_full_refused() {
  return provider::contiguous_mutant<Faulty>(
      "exactly_full_refused", "rows that fill a layer to the last position are refused",
      "B037, F04");
}

}  // namespace kvo
