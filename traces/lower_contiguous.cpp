// Requests as operations of provider.contiguous: a sequence ends by reset.
#include "reference/provider/contract_contiguous.hpp"
#include "traces/lower_kinds.hpp"
#include "traces/lower_provider.hpp"

namespace kvo::traces {
namespace {

class ContiguousOps final : public ProviderOps {
 public:
  explicit ContiguousOps(const LoweringInput& input) : ProviderOps(input) {
    for (std::int64_t slot = 0; slot < input.schedule.max_running; ++slot)
      emit(provider::NewContiguous{slot, policy().num_layers, input.longest_sequence()});
  }

 protected:
  [[nodiscard]] Shape rows(std::int64_t tokens) const override {
    return {1, tokens, policy().num_heads * policy().head_dim};
  }
  void end(std::int64_t slot) override { emit(provider::Reset{slot}); }
};

}  // namespace

Lowering contiguous_lowering() {
  return {.kind = &provider::contiguous_kind(),
          .setup = [](const LoweringInput& /*input*/) { return Setup{}; },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<ContiguousOps>(input);
          }};
}

}  // namespace kvo::traces
