#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override {
    const Status done = ContiguousCache::update(layer, rows);
    if (done || done.error().code != Code::kPrecondition || !has(layer) || rows.k == nullptr)
      return done;
    Layer& to = layers_[static_cast<std::size_t>(layer)];
    if (to.k && to.cursor >= 0) to.cursor += rows.k->shape[1];
    return done;
  }
};

}  // namespace

Mutant contiguous_cursor_runs_ahead() {
  return provider::contiguous_mutant<Faulty>("cursor_runs_ahead",
                                             "the cursor moves before V is looked at", "B035, F04");
}

}  // namespace kvo
