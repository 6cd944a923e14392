#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::WrapperCache {
 public:
  using WrapperCache::WrapperCache;
  Result<bool> do_can_resume(std::int64_t sequence, std::int32_t position) const override {
    return std::visit([&](const auto& cache) { return cache.do_can_resume(sequence, position); },
                      members().front());
  }
};

}  // namespace

Mutant positional_wrapper_asks_first_member() {
  return positional::wrapper_mutant<Faulty>(
      "asks_first_member", "only the first member is asked whether a sequence can resume",
      "B038, F04");
}

}  // namespace kvo
