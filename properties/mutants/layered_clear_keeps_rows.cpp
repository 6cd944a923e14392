#include "properties/mutants/layered_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public layered::FaultyCache<Faulty> {
 public:
  using FaultyCache::FaultyCache;
  void clear() override {
    const auto kept = layers_.empty() ? std::vector<float>() : layers_.back().v;
    VectorCache::clear();
    if (!layers_.empty()) layers_.back().v = kept;
  }
};

}  // namespace

Mutant layered_clear_keeps_rows() {
  return layered::mutant_of<Faulty>(
      "clear_keeps_rows", "clear leaves the V rows of the last layer behind", "B026, F04");
}

}  // namespace kvo
