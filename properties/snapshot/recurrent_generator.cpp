// Random scripts for snapshot.recurrent.
#include <algorithm>
#include <memory>

#include <boost/describe/enum.hpp>

#include "properties/contract_parts.hpp"
#include "properties/snapshot/cache_script.hpp"
#include "reference/contract/values/tags.hpp"

namespace kvo::snapshot {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(StateLabel, std::uint8_t, kStateMade, kStateOfAnotherBatch,
                              kStateOfAnotherType, kOddShape, kHalfAState, kNothingToKeep,
                              kRestoredState, kRefusedElsewhere, kBackwards, kParentAlone,
                              kFreedState, kStatesOf64Elements, kAdvancesBeyond65536)

class StateScript final : public CacheScript<StateScript, RecurrentOps, StateLabel> {
  using S = StateScript;
  using Label = StateLabel;

 public:
  StateScript(std::uint64_t seed, const StateSizes& sizes, Scale scale)
      : CacheScript(seed, scale), sizes_(sizes), batch_(draw().between(1, 2)) {
    if (scale_ == Scale::kLarge && draw().percent(30)) batch_ = draw().edge(4, 17);
    if (scale_ == Scale::kLong) plan_often(1);
  }

  // Steps.
  Op age() { return Op::of(Advance{1}); }
  Op conv() { return Op::of(ConvState{batch(), type()}); }
  Op delta() { return Op::of(DeltaState{batch(), type()}); }
  // What a layer does with tokens: asks for both states, replaces them, and counts.
  Op tokens() {
    plan(DeltaState{batch_, StorageType::kF32});
    plan(SetConvState{rows(conv_shape(batch_))});
    plan(SetDeltaState{rows(delta_shape(batch_))});
    plan(Advance{draw().size(1, 9)});
    return Op::of(ConvState{batch_, StorageType::kF32});
  }
  Op set_conv() {
    if (draw().percent(10)) return Op::of(SetConvState{std::nullopt});
    return Op::of(SetConvState{rows(draw().percent(85) ? conv_shape(batch_) : Shape{2, 3})});
  }
  Op set_delta() {
    if (draw().percent(10)) return Op::of(SetDeltaState{std::nullopt});
    return Op::of(SetDeltaState{rows(draw().percent(85) ? delta_shape(batch_) : Shape{1, 1, 5})});
  }
  Op advance() { return Op::of(Advance{draw().percent(90) ? draw().size(0, 9) : -1}); }
  Op update() { return Op::of(Update{rows({1, 1, draw().between(0, 2), 2}), rows({1, 1, 1, 2})}); }
  Op take() { return Op::of(Take{draw().between(-1, 3)}); }
  Op restore() {
    const Nullable<std::int64_t> handle = any();
    const auto range = range_of(handle);
    const std::int64_t end = range ? range->to : offset_;
    return Op::of(Restore{handle, draw().percent(75) ? end : draw().between(end - 1, end + 1)});
  }
  Op split() { return Op::of(Split{any(), draw().between(-1, 4)}); }
  Op reread() { return Op::of(Reread{some()}); }
  Op make() { return Op::of(New{}); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {10, "tokens", &S::tokens, true},
      {5, "conv_state", &S::conv},
      {5, "delta_state", &S::delta},
      {3, "set_conv_state", &S::set_conv},
      {3, "set_delta_state", &S::set_delta},
      {2, "advance", &S::advance},
      {1, "update", &S::update},
      {6, "state", &S::state, true},
      {2, "offset", &S::offset},
      {1, "free", &S::free},
      {8, "snapshot", &S::take, true},
      {8, "restore", &S::restore},
      {3, "merge", &S::merge},
      {2, "split", &S::split},
      {4, "close", &S::close},
      {4, "reread", &S::reread},
      {1, "new", &S::make},
  });

  static const CacheKind& order_kind() { return recurrent_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::tokens>("tokens"),
        order_word<&S::kept>("kept"),
        order_word<&S::restored>("restored"),
        order_word<&S::has_last>("has_last"),
        order_word<&S::last>("last"),
    });
    return kWords;
  }

  // What became of an operation.
  void observe(const New& /*op*/, const Observation& seen) { begun_ = begun_ || !seen.error; }
  void observe(const ConvState& op, const Observation& /*seen*/) { asked(op.batch, op.dtype); }
  void observe(const DeltaState& op, const Observation& /*seen*/) { asked(op.batch, op.dtype); }
  void observe(const SetConvState& op, const Observation& /*seen*/) {
    if (op.v.has_value() && op.v->shape.size() != 3) reach(Label::kOddShape);
  }
  void observe(const SetDeltaState& op, const Observation& /*seen*/) {
    if (op.v.has_value() && op.v->shape.size() != 4) reach(Label::kOddShape);
  }
  void observe(const Advance& op, const Observation& /*seen*/) {
    if (op.n < 0) reach(Label::kBackwards);
    if (++advances_ > 65'536) reach(Label::kAdvancesBeyond65536);
  }
  void observe(const Take& /*op*/, const Observation& seen) {
    if (seen.error) return reach(Label::kHalfAState);
    if (!seen.as<Numbered>().handle.has_value()) return reach(Label::kNothingToKeep);
    if (follows_plan()) last_ = *seen.as<Numbered>().handle;
    pay();
  }
  void observe(const Restore& restore, const Observation& seen) {
    if (seen.error) return;
    const auto& done = seen.as<Restore::Returns>();
    if (!done.ok) reach(Label::kRefusedElsewhere);
    if (done.ok && restore.handle.has_value()) reach(Label::kRestoredState);
  }
  void observe(const Merge& merge, const Observation& seen) {
    if (!seen.error && merge.parent.has_value() && !merge.child.has_value())
      reach(Label::kParentAlone);
  }
  void observe(const Free& /*op*/, const Observation& seen) {
    if (!seen.error && offset_ > 0) reach(Label::kFreedState);
  }
  void observe(const ShowState& /*op*/, const Observation& /*seen*/) { pay(); }

 private:
  void asked(std::int64_t batch, StorageType type) {
    reach(Label::kStateMade);
    if (sizes_.conv_dim >= 64 && sizes_.head_k_dim >= 64) reach(Label::kStatesOf64Elements);
    pay();
    if (std::max<std::int64_t>(batch, 1) != batch_) reach(Label::kStateOfAnotherBatch);
    if (type != StorageType::kF32) reach(Label::kStateOfAnotherType);
  }
  std::int64_t batch() { return draw().percent(92) ? batch_ : draw().between(-1, 3); }
  StorageType type() {
    if (draw().percent(95)) return StorageType::kF32;
    return draw().one_of({StorageType::kF16, StorageType::kF16, StorageType::kF16,
                          StorageType::kF8E5m2, StorageType::kQ8});
  }
  [[nodiscard]] Shape conv_shape(std::int64_t batch) const {
    return {batch, sizes_.conv_tail, sizes_.conv_dim};
  }
  [[nodiscard]] Shape delta_shape(std::int64_t batch) const {
    return {batch, sizes_.num_v_heads, sizes_.head_v_dim, sizes_.head_k_dim};
  }
  Tensor rows(const Shape& shape) { return tagger_.pair(shape).first; }

  // Both states are shown, copied or looked at.
  void pay() {
    constexpr std::int64_t kAnyCost = 5'000;
    const std::int64_t elements =
        batch_ * (sizes_.conv_tail * sizes_.conv_dim +
                  sizes_.num_v_heads * sizes_.head_v_dim * sizes_.head_k_dim);
    if (scale_ == Scale::kLarge) spend(static_cast<std::uint64_t>(kAnyCost + 8 * elements));
  }
  std::optional<Op> kept() {
    last_.reset();
    return Op::of(Take{0});
  }
  std::optional<Op> restored() { return last_restored(); }

  [[nodiscard]] bool has_last() const { return last_.has_value(); }
  [[nodiscard]] std::int64_t last() const { return last_.value_or(0); }

  StateSizes sizes_;
  std::int64_t batch_;
  Tagger tagger_;
  std::int64_t advances_ = 0;
};

GeneratedCase make_state(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  StateSizes sizes{draw.size(1, 4), draw.size(1, 9), draw.size(1, 3), draw.size(1, 5),
                   draw.size(1, 5)};
  if (terms.scale == Scale::kLarge)
    sizes = {draw.edge(1, 9), draw.edge(16, 257), draw.edge(1, 9), draw.edge(1, 33),
             draw.edge(16, 129)};
  if (terms.scale == Scale::kLong) sizes = {1, 1, 1, 1, 1};
  return {
      .setup = {.profile = terms.profile, .config = Record::of(RecurrentConfig{.sizes = sizes})},
      .ops = std::make_unique<StateScript>(terms.seed, sizes, terms.scale)};
}

}  // namespace

Generator recurrent_generator() {
  Generator made =
      with_orders<StateScript>(script_generator<StateLabel>(recurrent_kind(), make_state, {}, {}));
  made.lives_long = true;
  return made;
}

}  // namespace kvo::snapshot
