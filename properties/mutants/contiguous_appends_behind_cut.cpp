#include <algorithm>
#include <vector>

#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    ends_.resize(layers_.size());
    for (std::size_t i = 0; i < layers_.size(); ++i)
      ends_[i] = std::max(ends_[i], layers_[i].cursor);
    return ContiguousCache::truncate(n);
  }
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override {
    if (!has(layer) || ends_.empty()) return ContiguousCache::update(layer, rows);
    const auto i = static_cast<std::size_t>(layer);
    const std::int64_t length = layers_[i].cursor;
    if (length < 0) return ContiguousCache::update(layer, rows);
    layers_[i].cursor = std::max(length, ends_[i]);
    const Status done = ContiguousCache::update(layer, rows);
    if (done) ends_[i] = layers_[i].cursor;
    layers_[i].cursor = done ? length + rows.k->shape[1] : length;
    return done;
  }

 private:
  std::vector<std::int64_t> ends_;  // [layer], behind the last row ever written
};

}  // namespace

Mutant contiguous_appends_behind_cut() {
  return provider::contiguous_mutant<Faulty>(
      "appends_behind_cut", "after a truncate rows are stored behind the ones that were cut off",
      "B030, F04");
}

}  // namespace kvo
