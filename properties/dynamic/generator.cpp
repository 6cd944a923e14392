// Random cases for all kinds of contract `dynamic`.
#include "properties/campaign/generator.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/dynamic/operations.hpp"

namespace kvo::dynamic {
namespace {

// States worth reaching. Those after a blank line are of some kinds only.
BOOST_DEFINE_FIXED_ENUM_CLASS(Label, std::uint8_t, kMisfitRefused, kValuesAloneMisfit, kNoTokens,
                              kLayerOutOfRange, kBatchGrew, kBatchShrank, kBatchOfNone,
                              kBeamOutOfRange, kResetAndGrown, kReturnedPairReread,
                              kMoreThan64Tokens, kFiveHeads,

                              kLayerAdded, kWindowPassed, kCroppedWhileRecording, kCropRefused,
                              kStateOfALinearLayer, kHybridCropped, kBufferFull, kBeyondTheBuffer,
                              kBufferRolled, kFlushed, kOtherSideUsed, kLengthHeld,
                              kCountedBeyondTwoBytes)

// What every kind reaches.
constexpr std::array kOfAll{
    Label::kMisfitRefused, Label::kValuesAloneMisfit,  Label::kBatchShrank, Label::kBeamOutOfRange,
    Label::kResetAndGrown, Label::kReturnedPairReread, Label::kFiveHeads};

constexpr std::int64_t kMostBatch = 12;
constexpr std::int64_t kWidest = 256;
constexpr std::int64_t kMostTokensOfALayer = 400;

class DynamicScript final : public ScriptGenerator<DynamicScript, Ops, Label> {
  using S = DynamicScript;

 public:
  DynamicScript(const CaseTerms& terms, Form form, CacheOptions options)
      : ScriptGenerator(terms),
        form_(form),
        options_(std::move(options)),
        heads_(draw().between(1, 2)),
        k_dim_(draw().between(1, 3)),
        v_dim_(draw().percent(70) ? k_dim_ : draw().between(1, 3)),
        batch_(draw().between(1, 3)),
        odd_values_(terms.seed),
        zeros_(terms.seed + 1) {
    if (form_ != Form::kDynamic) plan_often(0);
    if (is_large()) grow();
    if (!is_long()) return;
    heads_ = k_dim_ = v_dim_ = batch_ = 1;
  }

  std::optional<Op> choose() override {
    if (!std::exchange(begun_, true)) return pass(draw().between(1, 3));
    return ScriptGenerator::choose();
  }

  // Steps.
  Op update() {
    if (is_long()) return aged();
    const std::int64_t layer = any_layer();
    std::int64_t tokens = 1;
    if (draw().percent(35)) tokens = draw().size(2, 7);
    if (is_large() && draw().percent(20)) tokens = draw().edge(8, 129);
    if (draw().percent(2)) tokens = 0;
    if (draw().percent(94)) return Op::of(tokens_of(layer, tokens));
    return misfit_of(layer, std::max<std::int64_t>(tokens, 1));
  }
  // As an engine does: the same number of tokens in each layer.
  Op all_layers() { return is_long() ? aged() : pass(draw().percent(70) ? 1 : draw().size(2, 5)); }
  Op misfit() { return misfit_of(any_layer(), draw().between(1, 3)); }
  Op crop() {
    if (is_long() && draw().percent(90)) return aged();
    if (draw().percent(4)) return Op::of(Crop{draw().between(1, 3)});
    const std::int64_t length = length_of(any_layer());
    if (draw().percent(60)) return Op::of(Crop{-draw().between(0, 2)});
    return Op::of(Crop{-draw().between(0, std::max<std::int64_t>(length, 0) + 2)});
  }
  Op reorder() { return Op::of(ReorderCache{rows(false)}); }
  Op repeat() {
    if (batch_ > kMostBatch / 3) return select();
    if (draw().percent(6)) return Op::of(BatchRepeatInterleave{draw().percent(50) ? -1 : 0});
    return Op::of(BatchRepeatInterleave{draw().between(1, 3)});
  }
  Op select() { return Op::of(BatchSelectIndices{rows(true)}); }
  Op reset() { return is_long() && draw().percent(97) ? aged() : Op::of(Reset{}); }
  Op record() { return Op::of(ActivatePastRecording{}); }
  template <class T>
  Op of_layer() {
    return Op::of(T{queried_layer()});
  }
  Op mask_sizes() { return Op::of(GetMaskSizes{draw().between(0, 5), queried_layer()}); }
  Op max_length() {
    if (draw().percent(40)) return Op::of(GetMaxLength{std::nullopt});
    return Op::of(GetMaxLength{queried_layer()});
  }
  Op show() { return Op::of(ShowState{side(), queried_layer()}); }
  Op num_layers() { return Op::of(NumLayers{}); }
  Op props() { return Op::of(Props{}); }
  Op reread() { return Op::of(Reread{draw().between(0, std::max<std::int64_t>(pairs_ - 1, 0))}); }
  Op reread_length() {
    return Op::of(RereadSeqLength{draw().between(0, std::max<std::int64_t>(lengths_ - 1, 0))});
  }
  Op early() {
    if (is_quantized()) return update();
    const std::int64_t heads = draw().percent(90) ? heads_ : heads_ + 1;
    return Op::of(EarlyInitialization{batch_, heads, k_dim_});
  }
  template <class T>
  Op moved() {
    return is_pair() ? update() : Op::of(T{queried_layer()});
  }
  Op conv() {
    if (!has_linear()) return update();
    const std::int64_t tokens = draw().between(1, 4);
    UpdateConvState op{linear_layer(), state_of({rows_of_state(), 2, tokens})};
    if (draw().percent(20)) op.conv_kernel_size = draw().between(1, 5);
    if (draw().percent(4)) op.state = state_of({batch_ + 1, 2, tokens});
    return Op::of(std::move(op));
  }
  Op recurrent() {
    if (!has_linear()) return update();
    const bool fits = draw().percent(94);
    return Op::of(UpdateRecurrentState{linear_layer(), state_of({rows_of_state(), fits ? 2 : 3})});
  }
  template <class T>
  Op of_state() {
    if (!has_linear()) return update();
    return Op::of(T{draw().percent(90) ? linear_layer() : queried_layer()});
  }
  Op previous() {
    if (is_pair()) return update();
    if (draw().percent(50)) return Op::of(HasPreviousState{std::nullopt});
    return Op::of(HasPreviousState{queried_layer()});
  }
  Op flags() { return is_pair() ? Op::of(IsUpdated{}) : props(); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {30, "update", &S::update, true},
      {10, "all layers", &S::all_layers, true},
      {1, "misfit", &S::misfit},
      {9, "crop", &S::crop},
      {5, "reorder_cache", &S::reorder},
      {3, "batch_repeat_interleave", &S::repeat},
      {3, "batch_select_indices", &S::select},
      {2, "reset", &S::reset},
      {2, "activate_past_recording", &S::record},
      {5, "get_seq_length", &S::of_layer<GetSeqLength>, true},
      {5, "get_mask_sizes", &S::mask_sizes},
      {2, "get_max_length", &S::max_length},
      {8, "state", &S::show, true},
      {1, "num_layers", &S::num_layers},
      {2, "props", &S::props},
      {5, "reread", &S::reread},
      {2, "hold_seq_length", &S::of_layer<HoldSeqLength>},
      {2, "reread_seq_length", &S::reread_length},
      {1, "early_initialization", &S::early},
      {1, "layer_offload", &S::moved<LayerOffload>},
      {1, "layer_prefetch", &S::moved<LayerPrefetch>},
      {4, "update_conv_state", &S::conv},
      {2, "get_conv_state", &S::of_state<GetConvState>},
      {2, "update_recurrent_state", &S::recurrent},
      {2, "get_recurrent_state", &S::of_state<GetRecurrentState>},
      {1, "has_previous_state", &S::previous},
      {1, "is_updated", &S::flags},
  });

  static const CacheKind& order_kind() { return kind_of(Form::kDynamic); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::pass>("pass"),
        order_word<&S::choose_sliding>("choose_sliding"),
        order_word<&S::chosen_>("chosen"),
        order_word<&S::window>("window"),
        order_word<&S::grow_chosen>("grow"),
    });
    return kWords;
  }

  // What became of an operation.
  void observe(const Update& op, const Observation& seen) {
    const bool shapes_alike = op.k.has_value() && op.k->shape[0] == op.v->shape[0];
    if (seen.failed_with(Code::kOutOfRange)) reach(Label::kLayerOutOfRange);
    if (seen.failed_with(Code::kBadShape))
      reach(shapes_alike ? Label::kMisfitRefused : Label::kValuesAloneMisfit);
    if (seen.failed_with(Code::kFull)) reach(Label::kBeyondTheBuffer);
    if (seen.error) return;
    const auto& returned = seen.as<UpdateReturns>();
    pay(returned.k->elements() + returned.v->elements());
    if (returned.handle) ++pairs_;
    const std::int64_t tokens = op.k->shape[2];
    if (tokens == 0) reach(Label::kNoTokens);
    if (reset_) reach(Label::kResetAndGrown);
    if (op.k->shape[1] >= 5) reach(Label::kFiveHeads);
    if (returned.k->shape[2] > 64) reach(Label::kMoreThan64Tokens);
    if (op.side == Side::kCross) reach(Label::kOtherSideUsed);
    if (options_.self.lazy && op.layer >= layers_) reach(Label::kLayerAdded);
    layers_ = cache().num_layers();
    batch_ = op.k->shape[0];
    saw_lengths(op, returned);
  }
  void observe(const Crop& op, const Observation& seen) {
    if (seen.error) return reach(Label::kCropRefused);
    if (recording_ && op.tokens_to_remove < 0) reach(Label::kCroppedWhileRecording);
    if (recording_ && has(LayerType::kHybrid)) reach(Label::kHybridCropped);
  }
  void observe(const ReorderCache& op, const Observation& seen) {
    saw_rows(std::ssize(op.beam_idx), seen);
  }
  void observe(const BatchSelectIndices& op, const Observation& seen) {
    saw_rows(std::ssize(op.indices), seen);
  }
  void observe(const BatchRepeatInterleave& op, const Observation& seen) {
    saw_rows(batch_ * op.repeats, seen);
  }
  void observe(const Reset& /*op*/, const Observation& /*seen*/) { reset_ = true; }
  void observe(const ActivatePastRecording& /*op*/, const Observation& /*seen*/) {
    recording_ = true;
  }
  void observe(const Reread& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Label::kReturnedPairReread);
  }
  void observe(const HoldSeqLength& /*op*/, const Observation& seen) {
    if (!seen.error) ++lengths_;
  }
  void observe(const RereadSeqLength& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Label::kLengthHeld);
  }
  void observe(const UpdateConvState& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Label::kStateOfALinearLayer);
  }
  void observe(const ShowState& /*op*/, const Observation& seen) {
    if (seen.error || !seen.as<ShowStateReturns>().k.has_value()) return;
    pay(2 * seen.as<ShowStateReturns>().k->elements());
  }

 private:
  [[nodiscard]] Cache& cache() const { return *reference<CacheOfCase>().cache; }
  [[nodiscard]] bool is_pair() const { return form_ == Form::kEncoderDecoder; }
  [[nodiscard]] bool is_quantized() const {
    return form_ == Form::kQuantizedIdentity || form_ == Form::kQuantizedFp8;
  }
  [[nodiscard]] bool has(LayerType type) const {
    return std::ranges::find(options_.self.layers, type) != options_.self.layers.end();
  }
  [[nodiscard]] static bool is_linear(LayerType type) {
    return type == LayerType::kConv || type == LayerType::kLinearAttention ||
           type == LayerType::kHybrid || type == LayerType::kHybridSliding;
  }
  [[nodiscard]] bool has_linear() const {
    return !is_pair() && std::ranges::any_of(options_.self.layers, is_linear);
  }
  [[nodiscard]] static bool slides(LayerType type) {
    return type == LayerType::kSlidingAttention || type == LayerType::kHybridSliding;
  }

  // So many elements were copied; in a long life they are few.
  void pay(std::int64_t elements) {
    constexpr std::int64_t kAnyCost = 200;
    spend(static_cast<std::uint64_t>(is_long() ? elements : kAnyCost + 4 * elements));
  }
  void grow() {
    if (draw().percent(60)) {
      heads_ = draw().edge(1, 9);
      k_dim_ = draw().edge(1, 9);
      v_dim_ = draw().percent(70) ? k_dim_ : draw().edge(1, 9);
    } else {
      heads_ = k_dim_ = v_dim_ = batch_ = 1;
    }
  }
  // A long life: single tokens, and now and then all over again where a layer grows.
  Op aged() {
    const std::int64_t layer = any_layer();
    constexpr std::int64_t kMost = 24;
    if (length_stored(layer) > kMost) return Op::of(Reset{});
    return Op::of(tokens_of(layer, 1));
  }
  Op pass(std::int64_t tokens) {
    const std::int64_t count = options_.self.lazy && layers_ == 0 ? draw().between(1, 3) : layers();
    std::optional<Op> first;
    for (std::int64_t layer = 0; layer < count; ++layer) {
      if (!options_.self.lazy && is_without_keys(layer)) continue;
      Op op = Op::of(tokens_of(layer, tokens));
      if (first)
        plan(std::move(op));
      else
        first = std::move(op);
    }
    return first ? *first : num_layers();
  }
  [[nodiscard]] std::int64_t layers() const {
    return options_.self.lazy ? layers_ : std::ssize(options_.self.layers);
  }
  [[nodiscard]] bool is_without_keys(std::int64_t layer) const {
    switch (options_.self.layers[static_cast<std::size_t>(layer)]) {
      case LayerType::kMoe:
      case LayerType::kMlp:
      case LayerType::kDummy:
      case LayerType::kConv:
      case LayerType::kLinearAttention:
        return true;
      default:
        return false;
    }
  }
  std::optional<Side> side() {
    if (!is_pair() || draw().percent(2)) return std::nullopt;
    return draw().percent(65) ? Side::kSelf : Side::kCross;
  }
  std::int64_t any_layer() {
    const std::int64_t count = std::max<std::int64_t>(layers(), 1);
    if (draw().percent(5)) return draw().between(-count - 1, count + 1);
    return static_cast<std::int64_t>(draw().below(static_cast<std::uint64_t>(count)));
  }
  std::int64_t queried_layer() { return any_layer(); }
  std::int64_t linear_layer() {
    std::vector<std::int64_t> all;
    for (std::size_t at = 0; at < options_.self.layers.size(); ++at)
      if (is_linear(options_.self.layers[at])) all.push_back(static_cast<std::int64_t>(at));
    return all[draw().below(all.size())];
  }
  // The batch of a state: now and then one row, which serves all of them.
  std::int64_t rows_of_state() { return draw().percent(90) ? batch_ : 1; }

  // The keys of a layer as they are stored; null: none.
  [[nodiscard]] Rows stored(std::optional<Side> of, std::int64_t layer) const {
    if (is_pair() && !of) return nullptr;
    const auto state = cache().state(of, layer);
    return state ? state->k : nullptr;
  }
  [[nodiscard]] std::int64_t length_of(std::int64_t layer) const {
    const auto length = cache().length(layer);
    return length ? **length : 0;
  }
  [[nodiscard]] std::int64_t length_stored(std::int64_t layer) const {
    const Rows k = stored(is_pair() ? std::optional(Side::kSelf) : std::nullopt, layer);
    const std::int64_t shown = k != nullptr && k->shape.size() == 4 ? k->shape[2] : 0;
    return is_quantized()                              ? length_of(layer)
           : options_.self.storing == Storing::kStatic ? 0
                                                       : shown;
  }
  std::int64_t batch_of(std::optional<Side> of, std::int64_t layer) {
    if (begun_ && layers_ > 0)
      if (const Rows k = stored(of, layer); k != nullptr && k->shape.size() == 4)
        if (!is_quantized()) return k->shape[0];
    return std::max<std::int64_t>(batch_, 1);
  }
  Update tokens_of(std::int64_t layer, std::int64_t tokens) {
    const std::optional<Side> of = side();
    // Layers that alone took changes of the batch may have grown out of hand: no tokens fit.
    const std::int64_t batch = std::min(layers_ > 0 ? batch_of(of, layer) : batch_, kWidest);
    if (layers_ > 0 && length_of(layer) > kMostTokensOfALayer)
      tokens = std::min<std::int64_t>(tokens, 1);
    return update_of(of, layer, {batch, heads_, tokens, k_dim_}, {batch, heads_, tokens, v_dim_});
  }
  Update update_of(std::optional<Side> of, std::int64_t layer, const Shape& k, const Shape& v) {
    Tensor keys = tagger_.pair(k).first;
    Tensor values = tagger_.pair(v).second;
    if (form_ != Form::kQuantizedFp8) {
      odd_values_.put_into(keys.floats());
      odd_values_.put_into(values.floats());
      if (zeros_.percent(3)) std::ranges::fill(keys.floats(), 0.0F);  // keys as good as others
    } else {
      narrow(keys);
      narrow(values);
    }
    std::optional<bool> keep;
    if (!is_long() && draw().percent(40)) keep = true;
    return {of, layer, std::move(keys), std::move(values), keep};
  }
  // Values around those that codes of 8 bits have.
  void narrow(Tensor& tensor) {
    for (float& value : tensor.floats())
      value =
          static_cast<float>(draw().between(-60, 60)) * draw().one_of({0.125F, 0.3F, 1.0F, 9.0F});
  }
  Op misfit_of(std::int64_t layer, std::int64_t tokens) {
    Update op = tokens_of(layer, tokens);
    Shape k = op.k->shape;
    Shape v = op.v->shape;
    const auto axis = draw().one_of<std::size_t>({0, 0, 1, 3});
    const std::int64_t more = draw().percent(50) ? 1 : -1;
    if (draw().percent(30) && axis != 3)
      v[axis] = std::max<std::int64_t>(v[axis] + more, 1) + (v[axis] + more < 1 ? 1 : 0);
    else
      k[axis] = v[axis] = std::max<std::int64_t>(k[axis] + more, 1);
    Update other = update_of(op.side, layer, k, v);
    return Op::of(std::move(other));
  }
  Tensor state_of(const Shape& shape) { return tagger_.pair(shape).first; }

  std::vector<std::int64_t> rows(bool negative) {
    const std::int64_t batch = std::max<std::int64_t>(batch_, 1);
    std::int64_t count =
        draw().percent(50) ? batch : draw().between(1, std::min(batch + 2, kMostBatch));
    if (draw().percent(2)) count = 0;
    std::vector<std::int64_t> all;
    for (std::int64_t at = 0; at < count; ++at)
      all.push_back(draw().between(negative && draw().percent(30) ? -batch : 0, batch - 1));
    if (!all.empty() && draw().percent(6)) all.back() = draw().percent(50) ? batch : -batch - 1;
    return all;
  }
  void saw_rows(std::int64_t rows, const Observation& seen) {
    if (seen.failed_with(Code::kOutOfRange)) reach(Label::kBeamOutOfRange);
    if (seen.error || rows < 0) return;  // a dummy takes any
    if (rows > batch_) reach(Label::kBatchGrew);
    if (rows < batch_) reach(Label::kBatchShrank);
    if (rows == 0) reach(Label::kBatchOfNone);
    batch_ = rows;
  }
  void saw_lengths(const Update& op, const UpdateReturns& returned) {
    if (options_.self.lazy || op.layer < 0 || op.side == Side::kCross) return;
    const LayerType type = options_.self.layers[static_cast<std::size_t>(op.layer)];
    const std::int64_t length = length_of(op.layer);
    const bool is_static = options_.self.storing == Storing::kStatic;
    if (slides(type) && length > options_.self.sliding_window) reach(Label::kWindowPassed);
    if (is_static && length == options_.self.max_cache_len) reach(Label::kBufferFull);
    if (is_static && slides(type) && length > options_.self.sliding_window && op.k->shape[2] == 1)
      reach(Label::kBufferRolled);
    if (is_quantized() && returned.k->shape[2] > op.k->shape[2] &&
        stored(std::nullopt, op.layer)->shape.size() == 1)
      reach(Label::kFlushed);
  }

  // Words of orders.
  bool choose_sliding() {
    for (std::size_t at = 0; at < options_.self.layers.size(); ++at)
      if (options_.self.layers[at] == LayerType::kSlidingAttention) {
        chosen_ = static_cast<std::int64_t>(at);
        return true;
      }
    return false;
  }
  [[nodiscard]] std::int64_t window() const { return options_.self.sliding_window; }
  Op grow_chosen(std::int64_t tokens) { return Op::of(tokens_of(chosen_, tokens)); }

  Form form_;
  CacheOptions options_;
  std::int64_t heads_;
  std::int64_t k_dim_;
  std::int64_t v_dim_;
  std::int64_t batch_;  ///< of the next tokens of layers without any
  Tagger tagger_;
  OddValues odd_values_;
  Draw zeros_;
  bool begun_ = false;
  std::int64_t layers_ = 0;  ///< that the reference has
  std::int64_t pairs_ = 0;
  std::int64_t lengths_ = 0;
  std::int64_t chosen_ = 0;
  bool reset_ = false;
  bool recording_ = false;
};

// ---- Configs ----

std::vector<LayerType> draw_layers(Draw& draw) {
  std::vector<LayerType> layers;
  const std::int64_t count = draw.size(1, 4);
  const bool all_alike = draw.percent(30);
  for (std::int64_t layer = 0; layer < count; ++layer) {
    if (all_alike && layer > 0) {
      layers.push_back(layers.front());
      continue;
    }
    using L = LayerType;
    layers.push_back(draw.one_of({L::kFullAttention, L::kFullAttention, L::kFullAttention,
                                  L::kSlidingAttention, L::kSlidingAttention, L::kSlidingAttention,
                                  L::kChunkedAttention, L::kIndexedAttention, L::kLinearAttention,
                                  L::kHybrid, L::kHybridSliding, L::kMoe, L::kConv, L::kDummy}));
  }
  return layers;
}

Config draw_config(Draw& draw, Form form, Scale scale) {
  Config config;
  const bool large = scale == Scale::kLarge;
  if (form == Form::kQuantizedIdentity || form == Form::kQuantizedFp8) {
    config.num_layers = draw.between(1, 2);
    if (form == Form::kQuantizedIdentity)
      config.residual_length = large && draw.percent(40) ? draw.edge(8, 65) : draw.between(1, 6);
    return config;
  }
  const bool lazy = form != Form::kStatic && draw.percent(15);
  if (!lazy) config.layer_types = draw_layers(draw);
  if (form == Form::kEncoderDecoder) {
    if (!lazy)
      config.layer_types =
          std::vector(static_cast<std::size_t>(draw.between(1, 2)),
                      draw.percent(50) ? LayerType::kFullAttention : LayerType::kSlidingAttention);
    if (draw.percent(30)) config.self = draw.percent(50) ? Member::kStatic : Member::kDynamic;
    if (draw.percent(30)) config.cross = draw.percent(50) ? Member::kStatic : Member::kDynamic;
  }
  const std::int64_t window = large && draw.percent(40) ? draw.edge(4, 65) : draw.between(1, 6);
  if (!lazy) config.sliding_window = window;
  if (!lazy) config.attention_chunk_size = draw.between(1, 5);
  std::int64_t most = large && draw.percent(40) ? draw.edge(8, 129) : draw.between(1, 12);
  if (scale == Scale::kLong) {
    most = draw.between(8, 24);
    config.sliding_window = draw.between(2, 8);
    if (!lazy)
      config.layer_types = std::vector(
          1, draw.percent(50) ? LayerType::kFullAttention : LayerType::kSlidingAttention);
  }
  config.max_cache_len = most;
  if (!lazy && scale != Scale::kLong && draw.percent(12))
    config.num_kv_shared_layers = draw.one_of<std::int64_t>({0, 0, 0, 1, 2});
  return config;
}

template <Form form>
GeneratedCase make_case(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  const Config config = draw_config(draw, form, terms.scale);
  const auto options = options_of(form, config, QuirkSet<Quirk>(terms.profile));
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::make_unique<DynamicScript>(terms, form, *options)};
}

template <Form form>
Generator generator(std::initializer_list<Label> labels) {
  Generator made{.kind = &kind_of(form), .make = make_case<form>, .lives_long = true};
  std::vector<Label> all(kOfAll.begin(), kOfAll.end());
  all.insert(all.end(), labels.begin(), labels.end());
  all.push_back(Label::kCountedBeyondTwoBytes);
  for (const Label label : all) {
    made.original_labels.push_back(label_text(label));
    made.documented_labels.push_back(label_text(label));
  }
  return made;
}

}  // namespace

std::vector<Generator> generators() {
  using L = Label;
  return {with_orders<DynamicScript>(generator<Form::kDynamic>(
              {L::kNoTokens, L::kLayerOutOfRange, L::kBatchGrew, L::kBatchOfNone, L::kLayerAdded,
               L::kWindowPassed, L::kCroppedWhileRecording, L::kCropRefused,
               L::kStateOfALinearLayer, L::kHybridCropped, L::kMoreThan64Tokens})),
          generator<Form::kStatic>({L::kLayerOutOfRange, L::kBatchGrew, L::kBufferFull,
                                    L::kBeyondTheBuffer, L::kBufferRolled, L::kWindowPassed,
                                    L::kLengthHeld, L::kStateOfALinearLayer}),
          generator<Form::kQuantizedIdentity>({L::kFlushed, L::kCropRefused, L::kBatchGrew}),
          generator<Form::kQuantizedFp8>({L::kCropRefused}),
          generator<Form::kEncoderDecoder>({L::kOtherSideUsed, L::kBatchGrew, L::kWindowPassed})};
}

}  // namespace kvo::dynamic
