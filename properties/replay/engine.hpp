// properties/replay/engine.hpp: what carries out the steps of a schedule on caches.
//
// SequenceOps   a turn at a time: caches that append sequence by sequence
// BatchOps      a batch a step: caches whose slots share cells, prefixes and a pool
//
// A contract emits operations, and may give each one a continuation for its result. Every row has
// tags of its own, so that the engine knows which elements a read must return.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/replay/lowering.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo::replay {

/// Label of a case in which an append did not fit.
inline constexpr std::string_view kPreempted = "sequence preempted for want of room";

/// What all engines share: the schedule, and a queue of operations that next() has not returned.
///
/// Protocol. When the queue is empty, lower() gets the rest of the step, or the next one. It emits
/// operations, and removes from the step what they do. A continuation runs with the result of its
/// operation. It may emit more, and removes from the step what lower() left there. If an append
/// has failed, it calls preempt(): the end of the sequence replaces its turn.
class Engine : public OpStream {
 public:
  explicit Engine(const LoweringInput& input);

  [[nodiscard]] std::optional<Op> next() final;
  [[nodiscard]] const Observation* expected() const final {
    return current_.expected ? &*current_.expected : nullptr;
  }
  void observe(const Op& op, const Observation& seen, Labels& labels) final;

 protected:
  using Then = std::function<void(const Observation& seen)>;

  /// Emits the first operations of the step, which is not empty, and removes what they do. Called
  /// again until the step is empty.
  virtual void lower(Step& step) = 0;

  template <class T>
  void emit(T op) {
    queue_.push_back({Op::of(std::move(op)), std::nullopt, nullptr});
  }
  /// An operation that must return just this.
  template <class T>
  void emit(T op, typename T::Returns returns) {
    queue_.push_back(
        {Op::of(std::move(op)), Observation{.returns = Record::of(std::move(returns))}, nullptr});
  }
  /// An operation whose result decides what follows.
  template <class T>
  void emit_then(T op, Then then) {
    queue_.push_back({Op::of(std::move(op)), std::nullopt, std::move(then)});
  }
  template <class T>
  void emit_then(T op, Then then, typename T::Returns returns) {
    emit(std::move(op), std::move(returns));
    queue_.back().then = std::move(then);
  }
  /// An append to the slot's sequence, which is preempted if the append fails.
  template <class T>
  void emit_append(std::int64_t slot, T op) {
    emit_then(std::move(op), [this, slot](const Observation& seen) {
      if (seen.error) preempt(slot);
    });
  }
  /// Drops what was emitted, and ends the slot's sequence (Schedule::preempt).
  void preempt(std::int64_t slot);
  /// The case has the label.
  void reach(std::string_view label) { reached_.insert(label); }

  [[nodiscard]] Schedule& schedule() { return schedule_; }
  [[nodiscard]] const LoweringInput& input() const { return input_; }
  [[nodiscard]] const LoweringPolicy& policy() const { return input_.policy; }
  [[nodiscard]] std::int64_t slots() const { return input_.schedule.max_running; }
  /// Elements of a row.
  [[nodiscard]] std::int64_t width() const { return policy().num_heads * policy().head_dim; }
  /// Index of what a slot runs, among the requests of the case.
  [[nodiscard]] std::size_t request_of(std::int64_t slot) const {
    return static_cast<std::size_t>(&schedule_.running(slot) - input_.requests.data());
  }
  [[nodiscard]] Tagger& tagger() { return tagger_; }

 private:
  struct Queued {
    std::optional<Op> op;
    std::optional<Observation> expected;
    Then then;
  };

  LoweringInput input_;
  Schedule schedule_;
  Tagger tagger_;
  std::deque<Queued> queue_;
  Queued current_;
  Labels reached_;
};

/// The tags of a token's row: element i of head h has tag `first + h * stride + i`.
struct TaggedRow {
  std::uint64_t first = 0;  ///< 0: the row is zero
  std::uint64_t stride = 0;
};

/// A tag as a cache stores it that holds elements of `type`: exact in that type, and other than the
/// tags next to it.
[[nodiscard]] inline float storable(float tag, ElementType type) {
  // The largest primes that f16 and bf16 count up to in ones: prime, so that no row size divides
  // them.
  constexpr float kMostF16 = 2039;
  constexpr float kMostBf16 = 251;
  if (type == ElementType::kF32) return tag;
  return std::fmod(tag, type == ElementType::kF16 ? kMostF16 : kMostBf16);
}
/// Keys and values of rows, [heads, rows, elements of a head] in a tensor of `shape`.
[[nodiscard]] std::pair<Tensor, Tensor> tagged(std::span<const TaggedRow> rows, const Shape& shape,
                                               std::int64_t heads = 1,
                                               ElementType type = ElementType::kF32);
/// The next tags of `tagger`, as a cache stores them.
[[nodiscard]] std::pair<Tensor, Tensor> next_tags(Tagger& tagger, const Shape& shape,
                                                  ElementType type);
/// What a cache returns of such elements, in its own type.
[[nodiscard]] Tensor as_stored(const Tensor& elements, ElementType type);

/// Carries out a step one turn at a time: the result of an append is known before the next sequence
/// has its turn. Holds the rows of each slot and layer.
class SequenceOps : public Engine {
 public:
  explicit SequenceOps(const LoweringInput& input)
      : Engine(input), rows_(static_cast<std::size_t>(slots() * policy().num_layers)) {}

 protected:
  void lower(Step& step) final;

  /// A new sequence takes the slot, whose rows are empty.
  virtual void begin(std::int64_t slot) = 0;
  virtual void append(std::int64_t slot, std::int64_t tokens) = 0;
  /// A draft is appended next: what cannot be cut is saved.
  virtual void save(std::int64_t /*slot*/) {}
  /// Takes back the last tokens of a draft.
  virtual void reject(std::int64_t slot, std::int64_t tokens) = 0;
  virtual void read(std::int64_t slot) = 0;
  virtual void end(std::int64_t slot) = 0;

  /// Shape of the rows of so many tokens.
  [[nodiscard]] virtual Shape shape(std::int64_t tokens) const { return {tokens, width()}; }
  /// Heads that such a shape has before its tokens.
  [[nodiscard]] virtual std::int64_t heads() const { return 1; }
  /// Element type of stored rows.
  [[nodiscard]] virtual ElementType stored() const { return ElementType::kF32; }

  [[nodiscard]] std::vector<TaggedRow>& rows(std::int64_t slot, std::int64_t layer = 0) {
    return rows_[static_cast<std::size_t>(slot * policy().num_layers + layer)];
  }
  [[nodiscard]] std::int64_t length(std::int64_t slot) { return std::ssize(rows(slot)); }
  /// Keys and values of new tokens of a layer.
  [[nodiscard]] std::pair<Tensor, Tensor> grow(std::int64_t slot, std::int64_t layer,
                                               std::int64_t tokens);
  /// Keys and values of rows.
  [[nodiscard]] std::pair<Tensor, Tensor> tensors(std::span<const TaggedRow> rows) const {
    return tagged(rows, shape(std::ssize(rows)), heads(), stored());
  }
  /// Removes the rows from that length on, in all layers.
  void cut(std::int64_t slot, std::int64_t length);

 private:
  std::vector<std::vector<TaggedRow>> rows_;
};

/// Carries out a step as one batch, on slots that share one cache.
///
/// Policy. A sequence that ends leaves its tokens in its slot. The next one takes over what of its
/// prompt a slot begins with, in whole blocks of the trace, if the cache still has all of it. A
/// sequence that outgrows its context loses half of what follows its first eighth, and the rest
/// moves down (context shift); one that cannot move ends. A full cache first loses the tokens of
/// slots that run nothing, then preempts the last sequence of the batch.
class BatchOps : public Engine {
 protected:
  /// Labels that differ by contract.
  struct Names {
    std::string_view full;     ///< a batch did not fit
    std::string_view refused;  ///< a context shift failed
    std::string_view lost;     ///< a prefix was found that the cache has no more in full
  };
  struct Slot {
    bool running = false;
    bool shifted = false;                 ///< since it began
    bool copied = false;                  ///< its prefix is another slot's
    std::int64_t prompt = 0;              ///< of the request that came last
    std::int64_t intact = 0;              ///< tokens that are where the prompt has them
    std::int64_t shared = 0;              ///< tokens from the start that others may own, too
    std::vector<std::int64_t> tags = {};  ///< of its tokens
    std::vector<std::uint64_t> ids = {};  ///< of that prompt's blocks
    [[nodiscard]] std::int64_t length() const { return std::ssize(tags); }
  };

  /// `context`: most tokens of a sequence.
  BatchOps(const LoweringInput& input, std::int64_t context, const Names& names)
      : Engine(input),
        context_(context),
        names_(names),
        slots_(static_cast<std::size_t>(input.schedule.max_running)) {}

  void lower(Step& step) final;

  /// The slot begins with tokens of `source`, which may be itself. Calls resume() when the cache
  /// has answered whether it holds all of them.
  virtual void share(std::int64_t slot, std::int64_t source, std::int64_t tokens) = 0;
  /// The new sequence of a slot begins with so many tokens.
  virtual void begun(std::int64_t /*slot*/, std::int64_t /*tokens*/) {}
  /// Emits the removal of tokens from `begin` on; -1: of all.
  virtual void drop(std::int64_t slot, std::int64_t begin) = 0;
  /// Whether tokens from `begin` on can move.
  [[nodiscard]] virtual bool movable(const Slot& /*slot*/, std::int64_t /*begin*/) const {
    return true;
  }
  /// Emits the removal of [begin, end), after which the rest moves down. Calls shifted().
  virtual void shift(std::int64_t slot, std::int32_t begin, std::int32_t end) = 0;
  /// May emit what comes before the batch. True: the step goes on with that.
  virtual bool prepare(Step& step) = 0;
  /// Emits the batch. Calls stored().
  virtual void forward(const Step& step) = 0;
  /// The batch is stored, and its turns are still in the step.
  virtual void settle(bool /*read*/) {}
  /// The step is done.
  virtual void settled(bool /*read*/) {}

  void resume(std::int64_t slot, bool can);
  void shifted(std::int64_t slot, bool done);
  void stored(bool done);

  /// Removes all tokens of a slot.
  void clear(std::int64_t slot);

  [[nodiscard]] Slot& at(std::int64_t slot) { return slots_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] const std::vector<Slot>& all() const { return slots_; }
  [[nodiscard]] std::int64_t preemptions() const { return preemptions_; }
  /// Whether a sequence ended with a read since the last call.
  [[nodiscard]] bool take_read() { return std::exchange(read_due_, false); }

 private:
  [[nodiscard]] std::int64_t shared_tokens(const Slot& held, const Request& request) const;
  void begin(std::int64_t slot);
  void shift_context(std::int64_t slot);
  void make_room();

  std::int64_t context_;
  Names names_;
  std::vector<Slot> slots_;
  bool read_due_ = false;
  std::int64_t tags_ = 0;  ///< of the tokens stored so far
  std::int64_t preemptions_ = 0;
};

}  // namespace kvo::replay
