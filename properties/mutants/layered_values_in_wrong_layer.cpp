#include "properties/mutants/layered_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public layered::FaultyCache<Faulty> {
 public:
  using FaultyCache::FaultyCache;
  [[nodiscard]] Status append(std::uint64_t layer, std::span<const float> k,
                              std::span<const float> v) override {
    const Status done = VectorCache::append(layer, k, v);
    if (!done || layers_.size() < 2) return done;
    std::vector<float>& from = layers_[layer].v;
    std::vector<float>& to = layers_[(layer + 1) % layers_.size()].v;
    to.insert(to.end(), from.end() - static_cast<std::ptrdiff_t>(v.size()), from.end());
    from.resize(from.size() - v.size());
    return done;
  }
};

}  // namespace

Mutant layered_values_in_wrong_layer() {
  return layered::mutant_of<Faulty>("values_in_wrong_layer",
                                    "values are stored one layer further than keys", "B081, F09");
}

}  // namespace kvo
