#include "properties/mutants/layered_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public layered::FaultyCache<Faulty> {
 public:
  using FaultyCache::FaultyCache;
  [[nodiscard]] Status append(std::uint64_t layer, std::span<const float> k,
                              std::span<const float> v) override {
    if (layer >= layers_.size() || mode_ == layered::Mode::kDocumented)
      return VectorCache::append(layer, k, v);
    const auto entry = entry_size();
    if (!entry || (mode_ == layered::Mode::kDebug && (k.size() != *entry || v.size() != *entry)))
      return VectorCache::append(layer, k, v);
    layers_[layer].k.insert(layers_[layer].k.end(), k.begin(), k.end());
    layers_[layer].v.insert(layers_[layer].v.end(), v.begin(), v.end());
    return {};
  }
};

}  // namespace

Mutant layered_append_not_atomic() {
  return layered::mutant_of<Faulty>(
      "append_not_atomic", "a failed allocation for V leaves the K row behind", "B033, F04");
}

}  // namespace kvo
