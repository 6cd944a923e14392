#include "properties/mutants/provider_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::PagedCache {
 public:
  using PagedCache::PagedCache;
  [[nodiscard]] Status truncate(std::int64_t n) override {
    const std::int64_t needed = n / geometry_.block_size + 1;
    if (n > 0 && n % geometry_.block_size == 0 && needed <= table_.size) return cut(n, needed);
    return PagedCache::truncate(n);
  }
};

}  // namespace

Mutant paged_keeps_block_at_boundary() {
  return provider::paged_mutant<Faulty>("keeps_block_at_boundary",
                                        "truncate at a block boundary keeps one block too many",
                                        "Z5, F05");
}

}  // namespace kvo
