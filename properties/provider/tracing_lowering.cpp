// Requests as operations of provider.tracing in front of a contiguous cache. The traced cache of a
// case is one, so one sequence runs at a time.
#include "properties/provider/lowering.hpp"
#include "properties/provider/shared_lowering.hpp"
#include "reference/provider/tracing_operations.hpp"

namespace kvo::provider {
namespace {

using replay::LoweringInput;

LoweringInput one_at_a_time(LoweringInput input) {
  input.schedule.max_running = 1;
  return input;
}

class TracingStream final : public KindStream<TracingStream, TracingOps> {
 public:
  explicit TracingStream(const LoweringInput& input) : KindStream(input) {
    emit(NewTracing{.cache = 0, .frozen_shapes = {}});
  }

  static std::optional<std::int64_t> appends_to(const UpdateTraced& op) { return op.cache; }
  template <OneOf<NewTracing, Get, Reread, Poke, Truncate, Reset, SeqLen, Trace> T>
  static std::optional<std::int64_t> appends_to(const T& /*no append*/) {
    return std::nullopt;
  }

 protected:
  [[nodiscard]] Shape rows(std::int64_t tokens) const override {
    return {1, tokens, policy().num_heads * policy().head_dim};
  }
  void update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v) override {
    const std::int64_t id = next_id_;
    next_id_ += 2;
    emit(UpdateTraced{slot, layer, std::move(k), std::move(v), id, id + 1});
  }
  void end(std::int64_t slot) override { emit(Reset{slot}); }

 private:
  std::int64_t next_id_ = 0;  // every tensor is an object of its own
};

}  // namespace

replay::Lowering tracing_lowering() {
  return {.kind = &tracing_kind(),
          .setup =
              [](const LoweringInput& input) {
                return Setup{
                    .config = Record::of(TracingConfig{.real = Real::kKv,
                                                       .num_layers = input.policy.num_layers,
                                                       .max_seq_len = input.longest_sequence()})};
              },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<TracingStream>(one_at_a_time(input));
          }};
}

}  // namespace kvo::provider
