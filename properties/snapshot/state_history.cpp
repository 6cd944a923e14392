// The history of a recurrent state: what was put last is what is there (MR-40 to MR-49).
#include <algorithm>
#include <memory>
#include <utility>

#include "properties/snapshot/history.hpp"
#include "reference/contract/subject/dispatch.hpp"

namespace kvo::snapshot {
namespace {

class StateHistory final : public LayerHistory {
 public:
  StateHistory(const RecurrentConfig& config, QuirkSet<Quirk> quirks)
      : LayerHistory(quirks),
        conv_{.expected = {1, config.conv_tail.value_or(0), config.conv_dim.value_or(0)}},
        delta_{.expected = {1, config.num_v_heads.value_or(0), config.head_v_dim.value_or(0),
                            config.head_k_dim.value_or(0)}} {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    Words words;
    if (seen.unsupported) return words;
    visit_op(RecurrentOps(), op, [&](const auto& operation) { words = saw(operation, seen); });
    return words;
  }

 private:
  struct Part {  // NOLINT(bugprone-exception-escape): as Tensor
    Shape expected;
    std::optional<Tensor> value = std::nullopt;
    bool unknown = false;  ///< a quirk may have put something else there
  };

  using LayerHistory::saw;
  Words saw(const New& /*op*/, const Observation& seen) {
    begun_ = true;
    clear();
    return must_succeed(seen);
  }
  Words saw(const Update& op, const Observation& seen) {
    const auto number = op.keep.value_or(false) ? std::optional(next_pair()) : std::nullopt;
    remember_pair(seen, false);
    if (!begun_ || op.k.dtype == DType::kI32 || op.v.dtype == DType::kI32)
      return must_fail(Code::kPrecondition, seen);
    return must_show(Update::Returns{op.k, op.v, number}, seen);
  }
  Words saw(const ConvState& op, const Observation& seen) {
    return asked(
        op, conv_, seen, [&] { return seen.as<ConvState::Returns>().conv; },
        [](Tensor state) { return Record::of(ConvState::Returns{std::move(state)}); });
  }
  Words saw(const DeltaState& op, const Observation& seen) {
    return asked(
        op, delta_, seen, [&] { return seen.as<DeltaState::Returns>().delta; },
        [](Tensor state) { return Record::of(DeltaState::Returns{std::move(state)}); });
  }
  Words saw(const SetConvState& op, const Observation& seen) { return put(op.v, conv_, seen); }
  Words saw(const SetDeltaState& op, const Observation& seen) { return put(op.v, delta_, seen); }
  Words saw(const Advance& op, const Observation& seen);
  Words saw(const ShowState& /*op*/, const Observation& seen);
  Words saw(const Offset& /*op*/, const Observation& seen) {
    if (!begun_) return must_fail(Code::kPrecondition, seen);
    return must_show(Offset::Returns{offset_}, seen);
  }
  Words saw(const Free& /*op*/, const Observation& seen) {
    if (!begun_) return must_fail(Code::kPrecondition, seen);
    clear();
    return must_succeed(seen);
  }
  Words saw(const Take& /*op*/, const Observation& seen);
  Words saw(const Restore& op, const Observation& seen);
  Words saw(const Merge& op, const Observation& seen) { return saw_whole(op, seen); }
  Words saw(const Split& op, const Observation& seen) { return saw_whole(op, seen); }

  void clear() {
    for (Part* part : {&conv_, &delta_}) {
      part->value.reset();
      part->unknown = false;
    }
    offset_ = 0;
  }
  /// Whether what is there, if it is, is what is asked for.
  [[nodiscard]] static bool fits(const Part& part, std::int64_t batch, DType type);
  template <class Question, class Shown, class Returned>
  Words asked(const Question& op, Part& part, const Observation& seen, const Shown& shown,
              const Returned& returned);
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
template <class Question, class Shown, class Returned>
Words StateHistory::asked(const Question& op, Part& part, const Observation& seen,
                          const Shown& shown, const Returned& returned) {
  if (!begun_) return must_fail(Code::kPrecondition, seen);
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
      part.value = shown();
      part.unknown = false;
    }
    return skip();
  }
  for (Part* one : {&conv_, &delta_})
    if (!one->value) one->value = make_tensor(with_batch(one->expected, batch), dtype);
  return judge({.returns = returned(*part.value)}, seen);
}

// MR-41
Words StateHistory::put(const Nullable<Tensor>& state, Part& part, const Observation& seen) {
  if (!begun_) return must_fail(Code::kPrecondition, seen);
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
Words StateHistory::saw(const Advance& op, const Observation& seen) {
  if (!begun_) return must_fail(Code::kPrecondition, seen);
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
Words StateHistory::saw(const ShowState& /*op*/, const Observation& seen) {
  if (!begun_) return must_fail(Code::kPrecondition, seen);
  if (conv_.unknown || delta_.unknown) {
    if (seen.error || !seen.as<ShowState::Returns>().state.has_value() ||
        seen.as<ShowState::Returns>().state->size() != 2)
      return wrong("no list of two");
    const auto& state = *seen.as<ShowState::Returns>().state;
    conv_.value = state[0].value;
    delta_.value = state[1].value;
    conv_.unknown = delta_.unknown = false;
    return skip();
  }
  return must_show(ShowState::Returns{std::vector<Nullable<Tensor>>{conv_.value, delta_.value}},
                   seen);
}

// MR-45
Words StateHistory::saw(const Take& /*op*/, const Observation& seen) {
  if (!begun_) return must_fail(Code::kPrecondition, seen);
  if (conv_.unknown || delta_.unknown) {
    if (!seen.error) remember(seen.as<Numbered>(), {});
    return skip();
  }
  if (!conv_.value && !delta_.value) return must_show(Numbered(), seen);
  if (!conv_.value || !delta_.value) return must_fail(Code::kPrecondition, seen);
  const Numbered want{
      .handle = next_number(),
      .offset = offset_,
      .size = static_cast<std::int64_t>(conv_.value->bytes.size() + delta_.value->bytes.size()),
      .conv = conv_.value,
      .delta = delta_.value};
  remember(want, {});
  return must_show(want, seen);
}

// MR-46, MR-47: at its own offset and nowhere else.
Words StateHistory::saw(const Restore& op, const Observation& seen) {
  if (!begun_) return must_fail(Code::kPrecondition, seen);
  const Used used = use(op.handle);
  if (used.error) return must_fail(*used.error, seen);
  if (used.kept == nullptr) return must_show(Restore::Returns{op.target == offset_, offset_}, seen);
  const bool exact = op.target == used.kept->contents.offset;
  bool done = exact;
  if (used.unknown) done = !seen.error && seen.as<Restore::Returns>().ok;
  if (done) {
    conv_.value = used.kept->contents.conv;
    delta_.value = used.kept->contents.delta;
    conv_.unknown = delta_.unknown = false;
    offset_ = op.target;
  }
  return used.unknown ? skip() : must_show(Restore::Returns{exact, offset_}, seen);
}

}  // namespace

std::unique_ptr<Oracle> state_history(const RecurrentConfig& config, QuirkSet<Quirk> quirks) {
  return std::make_unique<StateHistory>(config, quirks);
}

}  // namespace kvo::snapshot
