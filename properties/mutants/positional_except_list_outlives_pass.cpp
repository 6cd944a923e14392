#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;
  Status do_set_causal(std::span<const std::int64_t> except, bool with_context) override {
    stale_.assign(except.begin(), except.end());
    return CausalCache::do_set_causal(except, with_context);
  }

 protected:
  [[nodiscard]] bool visible(const Look& look) const override {
    return CausalCache::visible(
        {look.held, look.pass, look.except.empty() ? stale_ : look.except, look.row, look.cell});
  }

 private:
  std::vector<std::int64_t> stale_;
};

}  // namespace

Mutant positional_except_list_outlives_pass() {
  return positional::causal_mutant<Faulty>(
      positional::Flavour::kCausal, "except_list_outlives_pass",
      "rows that saw ahead in one pass do so in the next", "B105, F12");
}

}  // namespace kvo
