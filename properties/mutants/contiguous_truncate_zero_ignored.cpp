#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::ContiguousCache {
 public:
  using ContiguousCache::ContiguousCache;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    if (n == 0) return {};
    return ContiguousCache::truncate(n);
  }
};

}  // namespace

Mutant contiguous_truncate_zero_ignored() {
  return provider::contiguous_mutant<Faulty>("truncate_zero_ignored", "truncate(0) returns early",
                                             "B026, F04");
}

}  // namespace kvo
