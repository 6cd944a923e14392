// properties/replay/lowering.hpp: requests turned into operations of a cache, by a declared policy.
//
// Policy: the steps of properties/replay/schedule.hpp; a slot is one cache, or one sequence of a
// cache that holds several; every row carries tags of its own, each layer is appended and read in
// turn. How a kind saves, cuts and ends a sequence stands in its contract's file.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>

#include "properties/replay/schedule.hpp"
#include "reference/contract/subject/op_stream.hpp"
#include "reference/contract/subject/subject.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo::replay {

/// Element type of stored rows and of masks, where a cache has a choice; elsewhere it plays no
/// part.
enum class ElementType : std::uint8_t { kF32, kF16, kBf16 };
BOOST_DESCRIBE_ENUM(ElementType, kF32, kF16, kBf16)

/// How large the caches are. Sizes of a row are small on purpose: contents are compared.
struct LoweringPolicy {
  std::int64_t num_layers = 2;
  std::int64_t num_heads = 2;
  std::int64_t head_dim = 4;
  std::int64_t block_size = 16;    ///< positions a block
  std::int64_t pool_percent = 40;  ///< blocks of the pool, of what all slots would need at most
  std::int64_t requests_per_case = 75;
  ElementType storage = ElementType::kF32;
  ElementType mask = ElementType::kF32;  ///< not bf16
};
BOOST_DESCRIBE_STRUCT(LoweringPolicy, (),
                      (num_layers, num_heads, head_dim, block_size, pool_percent, requests_per_case,
                       storage, mask))

/// The requests of one case and what they are lowered by; `requests` is borrowed.
struct LoweringInput {
  std::span<const Request> requests;
  SchedulePolicy schedule;
  LoweringPolicy policy;
  std::uint64_t seed = 1;
  Profile profile = Profile::kOriginal;  ///< which rows must be seen may depend on it
  /// Requests of the trace that came before these, which no cache of the case has seen: what one
  /// that never forgets would know. Borrowed.
  std::span<const Request> earlier = {};

  /// Most tokens that a sequence of these requests holds, a draft included.
  [[nodiscard]] std::int64_t longest_sequence() const;
};

/// How requests become operations of one cache kind. A kind may have several, each with cases of
/// its own: the same requests on caches of another make.
struct Lowering {
  const CacheKind* kind;
  Setup (*setup)(const LoweringInput& input);
  std::unique_ptr<OpStream> (*lower)(const LoweringInput& input);
  /// What a replay of `input.requests` at `input.schedule.scale` costs: 1 is half a minute a
  /// subject, on rows of sixteen elements. Null: usual_cost.
  double (*cost)(const LoweringInput& input) = nullptr;
  /// Among several of the kind: "ring".
  std::string_view name = {};
  /// A case has so many times `requests_per_case`: what a cache keeps of earlier requests tells in
  /// long cases only.
  std::int64_t windows = 1;

  /// "snapshot.trie", or with a name "snapshot.trie ring".
  [[nodiscard]] std::string full_name() const;
};

/// Tokens of all requests, prompts and answers, with each length divided by `scale`; 2^62 at most.
[[nodiscard]] std::int64_t tokens_at(std::span<const Request> requests, std::int64_t scale);
/// Rows that reads show and drafts copy, with each length divided by `scale`: what grows with the
/// square of an answer.
[[nodiscard]] double rows_shown_at(std::span<const Request> requests, const SchedulePolicy& policy,
                                   std::int64_t scale);
/// The cost of which 1 is ten million tokens, 2^20 of them in one sequence, or a thousand million
/// rows shown, whichever is most.
[[nodiscard]] double usual_cost(const LoweringInput& input);
/// What a replay costs: each call works on all rows of its sequence.
struct Cost {
  double other_calls;     ///< of a request, beside its chunks and decoded tokens
  double rows_a_request;  ///< that may be worked on, on average
};
/// In parts of that cost, and of that of 12,000 requests (Lowering::cost).
[[nodiscard]] double cost_by(const LoweringInput& input, const Cost& cost);

/// What lengths are divided by: the smallest power of two by which the lowering costs at most 1;
/// traces::kMaxTokens if none does. Larger rows cost more, in proportion to the elements of all
/// layers. `input.schedule.scale` plays no part.
[[nodiscard]] std::int64_t scale_of(const Lowering& lowering, const LoweringInput& input);

/// The flat keys and values of rows of `width` elements, from the first tag of each row.
[[nodiscard]] std::pair<Tensor, Tensor> tagged_rows(std::span<const std::uint64_t> first_tags,
                                                    std::int64_t width);

/// Label of a case in which an append did not fit.
inline constexpr std::string_view kPreempted = "sequence preempted for want of room";

/// What lowerings share: the schedule, and a queue of operations that are emitted and not yet
/// given.
///
/// Protocol. When the queue is empty, lower() is called with what is left of the step, or with the
/// next one if nothing is. It emits operations, and takes out of the step what they do; saw() hears
/// what became of each, may emit more, and takes out what was left in until then. If an append has
/// failed, it calls preempt(): the sequence's end then takes the place of its turn, and the rest of
/// the step is lowered. So a contract that appends sequence by sequence goes on behind the failed
/// append, and one that appends a batch gives the batch again without the sequence.
class LoweredOps : public OpStream {
 public:
  explicit LoweredOps(const LoweringInput& input);

  [[nodiscard]] std::optional<Op> next() final;
  [[nodiscard]] const Observation* expected() const final {
    return expected_ ? &*expected_ : nullptr;
  }
  void saw(const Op& /*op*/, const Observation& /*seen*/, Labels& /*labels*/) override {}

 protected:
  /// Emits the first operations of the step, which is not empty, and takes out what they do. Called
  /// again until the step is empty.
  virtual void lower(Step& step) = 0;

  template <class T>
  void emit(T op) {
    queue_.push_back({Op::of(std::move(op)), std::nullopt});
  }
  /// An operation that must return just this.
  template <class T>
  void emit(T op, typename T::Returns returns) {
    queue_.push_back(
        {Op::of(std::move(op)), Observation{.returns = Record::of(std::move(returns))}});
  }
  /// An append of the slot's sequence has failed: what was emitted is forgotten, and the sequence
  /// ends (Schedule::preempt).
  void preempt(std::int64_t slot, Labels& labels);

  [[nodiscard]] Schedule& schedule() { return schedule_; }
  [[nodiscard]] const LoweringPolicy& policy() const { return policy_; }
  [[nodiscard]] Tagger& tagger() { return tagger_; }

 private:
  struct Queued {
    Op op;
    std::optional<Observation> expected;
  };

  LoweringPolicy policy_;
  Schedule schedule_;
  Tagger tagger_;
  std::deque<Queued> queue_;
  std::optional<Observation> expected_;
};

/// A step sequence by sequence, one turn at a time: a failed append is known before the next
/// sequence has its turn. Room never ends unless saw() says so.
class SequenceOps : public LoweredOps {
 public:
  using LoweredOps::LoweredOps;

 protected:
  void lower(Step& step) final;

  /// A new sequence takes the slot.
  virtual void begin(std::int64_t slot) = 0;
  virtual void append(std::int64_t slot, std::int64_t tokens) = 0;
  /// A draft is appended next: what cannot be cut is saved.
  virtual void save(std::int64_t /*slot*/) {}
  /// Takes back the last tokens of a draft.
  virtual void reject(std::int64_t slot, std::int64_t tokens) = 0;
  virtual void read(std::int64_t slot) = 0;
  virtual void end(std::int64_t slot) = 0;
};

/// What stands for a tag in a cache that stores elements of `type`: exact in that type, and other
/// than what stands for its neighbours.
[[nodiscard]] inline float storable(float tag, ElementType type) {
  // The largest primes that f16 and bf16 count up to in ones: prime, so that no row size divides
  // them.
  constexpr float kMostF16 = 2039;
  constexpr float kMostBf16 = 251;
  if (type == ElementType::kF32) return tag;
  return std::fmod(tag, type == ElementType::kF16 ? kMostF16 : kMostBf16);
}

/// The same for all elements of a tensor.
inline void make_storable(std::span<float> tags, ElementType type) {
  if (type == ElementType::kF32) return;
  for (float& tag : tags) tag = storable(tag, type);
}

/// What a cache shows of such tags, in its own type.
[[nodiscard]] inline Tensor as_stored(Tensor tags, ElementType type) {
  make_storable(tags.floats(), type);
  Tensor shown = make_tensor(tags.shape, dtype_of(static_cast<StorageType>(type)));
  show_stored({static_cast<StorageType>(type)}, tags.floats(), shown.bytes.data());
  return shown;
}

}  // namespace kvo::replay
