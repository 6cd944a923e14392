// Requests as operations of dynamic.dynamic, .static and .quantized_identity: one slot, which has
// the cache for itself.
//
// Policy. A sequence begins with a reset. A draft is taken back by crop; caches without a crop that
// works get no drafts. Sliding layers record, and each append but a draft ends with a crop of no
// tokens. A quantized cache shows what it holds by an update without tokens. The window of the
// lowering `sliding` is half of what the mean sequence holds.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/replay/engine.hpp"
#include "reference/dynamic/operations.hpp"
#include "reference/dynamic/tensors.hpp"

namespace kvo::dynamic {
namespace {

using replay::LoweringInput;

constexpr std::string_view kPassed = "window passed";
constexpr std::string_view kTakenBack = "draft taken back by a crop";

std::int64_t window_of(const LoweringInput& input) {
  constexpr std::int64_t kLeast = 4;
  return std::max(kLeast, input.tokens() / std::ssize(input.requests) / 2);
}

LoweringInput input_of(Form form, const LoweringInput& input) {
  const LoweringInput alone = input.with_slots(1);
  return form == Form::kDynamic ? alone : alone.without_drafts();
}

class DynamicStream final : public replay::SequenceOps {
 public:
  DynamicStream(const LoweringInput& input, Form form, bool slides)
      : SequenceOps(input_of(form, input)),
        form_(form),
        window_(slides ? window_of(input) : 0),
        slots_of_layer_(input.longest_sequence()) {
    if (window_ > 0) emit(ActivatePastRecording{}, {});
  }

 protected:
  [[nodiscard]] Shape shape(std::int64_t tokens) const override {
    return {1, policy().num_heads, tokens, policy().head_dim};
  }
  [[nodiscard]] std::int64_t heads() const override { return policy().num_heads; }

  void begin(std::int64_t /*slot*/) override { emit(Reset{}, {}); }
  void append(std::int64_t slot, std::int64_t tokens) override {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
      auto [k, v] = grow(slot, layer, tokens);
      emit(Update{{}, layer, std::move(k), std::move(v), {}});
    }
    if (window_ > 0 && !std::exchange(draft_, false)) emit(Crop{0}, {});
    if (window_ > 0 && length(slot) > window_) reach(kPassed);
  }
  void save(std::int64_t /*slot*/) override { draft_ = true; }
  void reject(std::int64_t slot, std::int64_t tokens) override {
    reach(kTakenBack);
    emit(Crop{-tokens}, {});
    cut(slot, length(slot) - tokens);
  }
  void read(std::int64_t slot) override {
    if (length(slot) == 0) return;
    if (window_ > 0) emit(Crop{0}, {});
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) show(slot, layer);
  }
  void end(std::int64_t slot) override {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer)
      emit(GetSeqLength{layer}, {length(slot)});
    emit(NumLayers{}, {policy().num_layers});
  }

 private:
  void show(std::int64_t slot, std::int64_t layer) {
    std::span<const replay::TaggedRow> held = rows(slot, layer);
    const auto stored = static_cast<std::size_t>(window_ - 1);
    if (window_ > 0 && held.size() > stored) held = held.last(stored);
    auto [k, v] = tensors(held);
    if (form_ == Form::kQuantizedIdentity) {
      emit(Update{{}, layer, make_tensor(shape(0)), make_tensor(shape(0)), {}},
           {std::move(k), std::move(v), {}});
      return;
    }
    if (form_ == Form::kStatic)
      for (Tensor* side : {&k, &v})
        *side = *concat(*side, make_tensor(shape(slots_of_layer_ - length(slot))), kTokenAxis);
    emit(ShowState{{}, layer}, {true, std::move(k), std::move(v)});
  }

  Form form_;
  std::int64_t window_;          ///< 0: none
  std::int64_t slots_of_layer_;  ///< of a static cache
  bool draft_ = false;           ///< the next append is one
};

Config config_of(const LoweringInput& input, Form form, bool slides) {
  Config config;
  constexpr std::int64_t kResidual = 16;
  if (form == Form::kQuantizedIdentity) {
    config.num_layers = input.policy.num_layers;
    config.residual_length = kResidual;
    return config;
  }
  config.layer_types =
      std::vector(static_cast<std::size_t>(input.policy.num_layers),
                  slides ? LayerType::kSlidingAttention : LayerType::kFullAttention);
  if (slides) config.sliding_window = window_of(input);
  if (form == Form::kStatic) config.max_cache_len = input.longest_sequence();
  return config;
}

template <Form form, bool slides>
replay::Lowering lowering(std::string_view name = {}) {
  return {.kind = &kind_of(form),
          .setup = replay::setup_by<config_of, form, slides>,
          .lower = replay::lower_by<DynamicStream, form, slides>,
          .cost = replay::cost_by(2, 1e4),
          .name = name};
}

}  // namespace

std::vector<replay::Lowering> lowerings() {
  return {lowering<Form::kDynamic, false>(), lowering<Form::kDynamic, true>("sliding"),
          lowering<Form::kStatic, false>(), lowering<Form::kQuantizedIdentity, false>()};
}

}  // namespace kvo::dynamic
