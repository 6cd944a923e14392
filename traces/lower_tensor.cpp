// Requests as operations of provider.tensor: every second slot's rows come from the device, so that
// host and device storage, prefills and decode steps at the shared counter are all on the way.
#include "reference/provider/contract_tensor.hpp"
#include "traces/lower_kinds.hpp"
#include "traces/lower_provider.hpp"

namespace kvo::traces {
namespace {

using provider::Place;

class TensorOps final : public ProviderOps {
 public:
  explicit TensorOps(const LoweringInput& input) : ProviderOps(input) {
    for (std::int64_t slot = 0; slot < input.schedule.max_running; ++slot)
      emit(provider::NewTensor{.cache = slot,
                               .num_layers = policy().num_layers,
                               .max_seq_len = input.longest_sequence(),
                               .dtype = "fp32",
                               .device = place(slot),
                               .stream = place(slot) == Place::kGpu});
  }

 protected:
  [[nodiscard]] Shape rows(std::int64_t tokens) const override {
    return {1, tokens, policy().num_heads * policy().head_dim};
  }
  void update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v) override {
    emit(provider::UpdateTensor{slot, layer, std::move(k), std::move(v), place(slot), place(slot)});
  }
  void end(std::int64_t slot) override { emit(provider::Reset{slot}); }

 private:
  static Place place(std::int64_t slot) { return slot % 2 == 0 ? Place::kCpu : Place::kGpu; }
};

}  // namespace

Lowering tensor_lowering() {
  return {.kind = &provider::tensor_kind(),
          .setup = [](const LoweringInput& /*input*/) { return Setup{}; },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<TensorOps>(input);
          }};
}

}  // namespace kvo::traces
