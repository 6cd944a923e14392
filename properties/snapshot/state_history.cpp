// The history of a recurrent state: what was put last is what is there (MR-40 to MR-49).
#include <algorithm>
#include <memory>
#include <utility>

#include "properties/snapshot/history.hpp"

namespace kvo::snapshot {
namespace {

class StateHistory final : public History<StateHistory, RecurrentOps, LayerHistory> {
 public:
  StateHistory(const RecurrentConfig& config, QuirkSet<Quirk> quirks)
      : History(quirks),
        conv_{.expected = {1, config.sizes.conv_tail, config.sizes.conv_dim}},
        delta_{.expected = {1, config.sizes.num_v_heads, config.sizes.head_v_dim,
                            config.sizes.head_k_dim}} {}

  using LayerHistory::observe;
  Words observe(const New& /*op*/, const Observation& seen) { return begin_empty(seen); }
  Words observe(const Update& op, const Observation& seen) {
    remember_pair(op, seen, false);
    if (op.k.dtype == DType::kI32 || op.v.dtype == DType::kI32)
      return must_fail(Code::kPrecondition, seen);
    return must_return({op.k, op.v}, seen);
  }
  Words observe(const ConvState& op, const Observation& seen) {
    return asked(op, conv_, &ConvState::Returns::conv, seen);
  }
  Words observe(const DeltaState& op, const Observation& seen) {
    return asked(op, delta_, &DeltaState::Returns::delta, seen);
  }
  Words observe(const SetConvState& op, const Observation& seen) { return put(op.v, conv_, seen); }
  Words observe(const SetDeltaState& op, const Observation& seen) {
    return put(op.v, delta_, seen);
  }
  Words observe(const Advance& op, const Observation& seen);
  Words observe(const ShowState& /*op*/, const Observation& seen);
  Words observe(const Offset& /*op*/, const Observation& seen) {
    return must_show(Offset::Returns{offset_}, seen);
  }
  Words observe(const Take& /*op*/, const Observation& seen);
  Words observe(const Restore& op, const Observation& seen);
  Words observe(const Merge& op, const Observation& seen) { return saw_whole(op, seen); }
  Words observe(const Split& op, const Observation& seen) { return saw_whole(op, seen); }

 private:
  struct Part {  // NOLINT(bugprone-exception-escape): as Tensor
    Shape expected;
    std::optional<Tensor> value = std::nullopt;
    bool unknown = false;  ///< a quirk may have put something else there
  };

  /// Both parts become what is given.
  void put_both(std::optional<Tensor> conv, std::optional<Tensor> delta) {
    conv_.value = std::move(conv);
    delta_.value = std::move(delta);
    conv_.unknown = delta_.unknown = false;
  }
  void clear() override {
    put_both(std::nullopt, std::nullopt);
    offset_ = 0;
  }
  /// Whether what is there, if it is, is what is asked for.
  [[nodiscard]] static bool fits(const Part& part, std::int64_t batch, DType type);
  template <class Question>
  Words asked(const Question& op, Part& part, Tensor Question::Returns::*shown,
              const Observation& seen);
  Words put(const Nullable<Tensor>& state, Part& part, const Observation& seen);

  Part conv_;
  Part delta_;
  std::int64_t offset_ = 0;
};

Shape with_batch(Shape shape, std::int64_t batch) {
  shape[0] = batch;
  return shape;
}

bool StateHistory::fits(const Part& part, std::int64_t batch, DType type) {
  if (!part.value || part.unknown) return !part.unknown;
  return part.value->dtype == type && part.value->shape == with_batch(part.expected, batch);
}

// MR-40: what is there is shown; what is not there is made of zeros, both parts at once.
template <class Question>
Words StateHistory::asked(const Question& op, Part& part, Tensor Question::Returns::*shown,
                          const Observation& seen) {
  if (in_groups(op.dtype)) return must_fail(Code::kPrecondition, seen);
  const DType dtype = dtype_of(op.dtype);
  const std::int64_t batch = std::max<std::int64_t>(op.batch, 1);
  for (const Part* one : {&conv_, &delta_})
    if (!element_count(with_batch(one->expected, batch)))
      return must_fail(Code::kPrecondition, seen);
  if (!fits(conv_, batch, dtype) || !fits(delta_, batch, dtype)) {
    if (!has(Quirk::kStateIsWiped)) return must_fail(Code::kBadShape, seen);
    conv_.unknown = delta_.unknown = true;
    if (!seen.error) {
      part.value = seen.as<typename Question::Returns>().*shown;
      part.unknown = false;
    }
    return skip();
  }
  for (Part* one : {&conv_, &delta_})
    if (!one->value) one->value = make_tensor(with_batch(one->expected, batch), dtype);
  typename Question::Returns returns;
  returns.*shown = *part.value;
  return must_show(std::move(returns), seen);
}

// MR-41
Words StateHistory::put(const Nullable<Tensor>& state, Part& part, const Observation& seen) {
  if (!state.has_value()) return must_succeed(seen);
  if (state->dtype == DType::kI32) return must_fail(Code::kPrecondition, seen);
  const bool fits = state->shape.size() == part.expected.size() &&
                    state->shape == with_batch(part.expected, state->shape[0]);
  if (!fits && !has(Quirk::kStateUnchecked)) return must_fail(Code::kBadShape, seen);
  part.value = *state;
  part.unknown = !fits && seen.error.has_value();
  return fits ? must_succeed(seen) : skip();
}

// MR-42
Words StateHistory::observe(const Advance& op, const Observation& seen) {
  if (op.n < 0) {
    if (!has(Quirk::kAdvancesBackwards)) return must_fail(Code::kOutOfRange, seen);
    if (!seen.error) offset_ = seen.as<Offset::Returns>().offset;
    return skip();
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(offset_, op.n, &sum)) return must_fail(Code::kPrecondition, seen);
  offset_ = sum;
  return must_show(Offset::Returns{offset_}, seen);
}

// MR-44
Words StateHistory::observe(const ShowState& /*op*/, const Observation& seen) {
  if (conv_.unknown || delta_.unknown) {
    if (seen.error || !seen.as<ShowState::Returns>().state.has_value() ||
        seen.as<ShowState::Returns>().state->size() != 2)
      return judged("no list of two");
    const auto& state = *seen.as<ShowState::Returns>().state;
    put_both(state[0].value, state[1].value);
    return skip();
  }
  return must_have_state(conv_.value, delta_.value, seen);
}

// MR-45
Words StateHistory::observe(const Take& /*op*/, const Observation& seen) {
  if (conv_.unknown || delta_.unknown) {
    if (!seen.error) remember(seen.as<Numbered>(), {});
    return skip();
  }
  if (!conv_.value && !delta_.value) return must_show(Numbered(), seen);
  if (!conv_.value || !delta_.value) return must_fail(Code::kPrecondition, seen);
  const Numbered want{
      next_number(),
      {.offset = offset_,
       .size = static_cast<std::int64_t>(conv_.value->bytes.size() + delta_.value->bytes.size()),
       .conv = conv_.value,
       .delta = delta_.value}};
  remember(want, {});
  return must_show(want, seen);
}

// MR-46, MR-47: at its own offset and nowhere else.
Words StateHistory::observe(const Restore& op, const Observation& seen) {
  const Used used = use(op.handle);
  if (used.error) return must_fail(*used.error, seen);
  if (used.kept == nullptr) return must_show(Restore::Returns{op.target == offset_, offset_}, seen);
  const bool exact = op.target == used.kept->contents.offset;
  bool done = exact;
  if (used.unknown) done = !seen.error && seen.as<Restore::Returns>().ok;
  if (done) {
    put_both(used.kept->contents.conv, used.kept->contents.delta);
    offset_ = op.target;
  }
  return used.unknown ? skip() : must_show(Restore::Returns{exact, offset_}, seen);
}

}  // namespace

std::unique_ptr<Oracle> state_history(const RecurrentConfig& config, QuirkSet<Quirk> quirks) {
  return std::make_unique<StateHistory>(config, quirks);
}

}  // namespace kvo::snapshot
