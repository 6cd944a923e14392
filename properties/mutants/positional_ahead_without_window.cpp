#include <algorithm>

#include "properties/mutants/positional_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public positional::CausalCache {
 public:
  using CausalCache::CausalCache;

 protected:
  [[nodiscard]] bool visible(const Cells& held, const Pass& pass,
                             const std::vector<std::int64_t>& except, std::size_t row,
                             std::size_t cell) const override {
    const auto own = static_cast<std::int64_t>(row);
    return CausalCache::visible(held, pass, except, row, cell) ||
           (std::ranges::find(except, own) != except.end() && held.owns(pass.sequences[row], cell));
  }
};

}  // namespace

Mutant positional_ahead_without_window() {
  return positional::causal_mutant<Faulty>(positional::Flavour::kSwa, "ahead_without_window",
                                           "rows that see ahead see behind their window, too",
                                           "B105, F12");
}

}  // namespace kvo
