// Requests as operations of provider.contiguous: a sequence ends by reset.
#include "properties/provider/lowering.hpp"
#include "properties/provider/shared_lowering.hpp"
#include "reference/provider/contiguous_operations.hpp"

namespace kvo::provider {
namespace {

using replay::LoweringInput;

class ContiguousStream final : public KindStream<ContiguousStream, ContiguousOps> {
 public:
  explicit ContiguousStream(const LoweringInput& input) : KindStream(input) {
    for (std::int64_t slot = 0; slot < input.schedule.max_running; ++slot)
      emit(NewContiguous{slot, policy().num_layers, input.longest_sequence()});
  }

  static std::optional<std::int64_t> appends_to(const Update& op) { return op.cache; }
  template <OneOf<NewContiguous, Get, Reread, Poke, Truncate, Reset, SeqLen, NumLayers> T>
  static std::optional<std::int64_t> appends_to(const T& /*no append*/) {
    return std::nullopt;
  }

 protected:
  [[nodiscard]] Shape rows(std::int64_t tokens) const override {
    return {1, tokens, policy().num_heads * policy().head_dim};
  }
  void ask(std::int64_t slot) override { emit(NumLayers{slot}); }
  void end(std::int64_t slot) override { emit(Reset{slot}); }
};

}  // namespace

replay::Lowering contiguous_lowering() {
  return {.kind = &contiguous_kind(),
          .setup = [](const LoweringInput& /*input*/) { return Setup{}; },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<ContiguousStream>(input);
          }};
}

}  // namespace kvo::provider
