// Requests as operations of provider.tracing in front of a contiguous cache. The traced cache of a
// case is one, so one sequence runs at a time.
#include "reference/provider/contract_tracing.hpp"
#include "traces/lower_kinds.hpp"
#include "traces/lower_provider.hpp"

namespace kvo::traces {
namespace {

LoweringInput one_at_a_time(LoweringInput input) {
  input.schedule.max_running = 1;
  return input;
}

class TracingOps final : public ProviderOps {
 public:
  explicit TracingOps(const LoweringInput& input) : ProviderOps(input) {
    emit(provider::NewTracing{.cache = 0, .frozen_shapes = {}});
  }

 protected:
  [[nodiscard]] Shape rows(std::int64_t tokens) const override {
    return {1, tokens, policy().num_heads * policy().head_dim};
  }
  void update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v) override {
    const std::int64_t id = next_id_;
    next_id_ += 2;
    emit(provider::UpdateTraced{slot, layer, std::move(k), std::move(v), id, id + 1});
  }
  void end(std::int64_t slot) override { emit(provider::Reset{slot}); }

 private:
  std::int64_t next_id_ = 0;  // every tensor is an object of its own
};

}  // namespace

Lowering tracing_lowering() {
  return {.kind = &provider::tracing_kind(),
          .setup =
              [](const LoweringInput& input) {
                Setup setup;
                setup.config["real"] = "kv";
                setup.config["num_layers"] = input.policy.num_layers;
                setup.config["max_seq_len"] = input.longest_sequence();
                return setup;
              },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<TracingOps>(one_at_a_time(input));
          }};
}

}  // namespace kvo::traces
