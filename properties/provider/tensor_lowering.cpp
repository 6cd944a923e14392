// Requests as operations of provider.tensor: every second slot's rows come from the device, so that
// host and device storage, of halves where the policy says so, prefills and decode steps at the
// shared counter are all on the way.
#include "properties/provider/lowering.hpp"
#include "properties/provider/shared_lowering.hpp"
#include "reference/provider/tensor_operations.hpp"

namespace kvo::provider {
namespace {

using replay::LoweringInput;

class TensorStream final : public KindStream<TensorStream, TensorOps> {
 public:
  explicit TensorStream(const LoweringInput& input) : KindStream(input) {
    for (std::int64_t slot = 0; slot < input.schedule.max_running; ++slot)
      emit(NewTensor{.cache = slot,
                     .num_layers = policy().num_layers,
                     .max_seq_len = input.longest_sequence(),
                     .dtype = stored() == replay::ElementType::kF16 ? "fp16" : "fp32",
                     .device = place(slot),
                     .stream = place(slot) == Place::kGpu});
  }

  static std::optional<std::int64_t> appends_to(const UpdateTensor& op) { return op.cache; }
  template <OneOf<NewTensor, Get, Reread, Poke, Truncate, Reset, SeqLen, GetFullBuffer, Counters,
                  SyncTensorCounter, FreeTensor, MaxSeqLen, InjectTensor>
                T>
  static std::optional<std::int64_t> appends_to(const T& /*no append*/) {
    return std::nullopt;
  }

 protected:
  [[nodiscard]] Shape rows(std::int64_t tokens) const override {
    return {1, tokens, policy().num_heads * policy().head_dim};
  }
  void update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v) override {
    emit(UpdateTensor{slot, layer, std::move(k), std::move(v), place(slot), place(slot)});
  }
  [[nodiscard]] replay::ElementType stored() const final {
    const bool half = policy().storage != replay::ElementType::kF32;
    return half ? replay::ElementType::kF16 : replay::ElementType::kF32;
  }
  void ask(std::int64_t slot) override {
    emit(Counters{slot});
    emit(MaxSeqLen{slot});
  }
  void end(std::int64_t slot) override { emit(Reset{slot}); }

 private:
  static Place place(std::int64_t slot) { return slot % 2 == 0 ? Place::kCpu : Place::kGpu; }
};

}  // namespace

replay::Lowering tensor_lowering() {
  return {.kind = &tensor_kind(),
          .setup = [](const LoweringInput& /*input*/) { return Setup{}; },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<TensorStream>(input);
          }};
}

}  // namespace kvo::provider
