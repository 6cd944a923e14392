// traces/lowering.hpp: requests turned into operations of a cache, by a declared policy.
//
// Policy: the schedule of traces/schedule.hpp; a slot is one cache, or one sequence of a cache that
// holds several; every row carries tags of its own, each layer is appended and read in turn. How a
// kind marks, cuts and ends a sequence stands in its file (lower_*.cpp).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <boost/describe/class.hpp>

#include "reference/contract/op_stream.hpp"
#include "reference/contract/subject.hpp"
#include "reference/contract/tags.hpp"
#include "traces/schedule.hpp"

namespace kvo::traces {

/// How large the caches are. Sizes of a row are small on purpose: contents are compared.
struct LoweringPolicy {
  std::int64_t num_layers = 2;
  std::int64_t num_heads = 2;
  std::int64_t head_dim = 4;
  std::int64_t block_size = 16;    ///< positions a block
  std::int64_t pool_percent = 40;  ///< blocks of the pool, of what all slots would need at most
  std::int64_t requests_per_case = 64;
};
BOOST_DESCRIBE_STRUCT(LoweringPolicy, (),
                      (num_layers, num_heads, head_dim, block_size, pool_percent,
                       requests_per_case))

/// The requests of one case and what they are lowered by; `requests` is borrowed.
struct LoweringInput {
  std::span<const Request> requests;
  SchedulePolicy schedule;
  LoweringPolicy policy;
  std::uint64_t seed = 1;

  /// Most tokens that a sequence of these requests holds, a draft included.
  [[nodiscard]] std::int64_t longest_sequence() const;
};

/// How requests become operations of one cache kind.
struct Lowering {
  const CacheKind* kind;
  Setup (*setup)(const LoweringInput& input);
  std::unique_ptr<OpStream> (*lower)(const LoweringInput& input);
  /// What lengths should be divided by so that all `input.requests` are replayed in about half a
  /// minute a subject; null: so that they are ten million tokens at most.
  std::int64_t (*scale)(const LoweringInput& input) = nullptr;
};

/// Every lowering; a new one is its own file and one line in lowering.cpp.
[[nodiscard]] std::span<const Lowering> lowerings();
/// The lowering of a kind, or null.
[[nodiscard]] const Lowering* lowering_of(const CacheKind& kind);

/// The smallest power of two that `fits`, as a divisor of lengths; kMaxTokens if none does.
[[nodiscard]] std::int64_t scale_for(const std::function<bool(std::int64_t scale)>& fits);
/// Tokens of all requests, prompts and answers, with each length divided by `scale`.
[[nodiscard]] std::int64_t tokens_at(std::span<const Request> requests, std::int64_t scale);
/// The scale that a lowering asks for.
[[nodiscard]] std::int64_t scale_of(const Lowering& lowering, const LoweringInput& input);

/// The flat keys and values of rows of `width` elements, from the first tag of each row.
[[nodiscard]] std::pair<Tensor, Tensor> tagged_rows(std::span<const std::uint64_t> first_tags,
                                                    std::int64_t width);

/// What lowerings share: the schedule, a queue of operations, and one method an action.
class LoweredOps : public OpStream {
 public:
  explicit LoweredOps(const LoweringInput& input);

  [[nodiscard]] std::optional<Op> next() final;
  [[nodiscard]] const Observation* expected() const final {
    return expected_ ? &*expected_ : nullptr;
  }
  void saw(const Op& op, const Observation& seen, Labels& labels) final;

 protected:
  virtual void begin(std::int64_t slot) = 0;
  virtual void append(std::int64_t slot, std::int64_t tokens) = 0;
  virtual void mark(std::int64_t /*slot*/) {}
  virtual void truncate(std::int64_t slot, std::int64_t tokens) = 0;
  virtual void read(std::int64_t slot) = 0;
  virtual void end(std::int64_t slot) = 0;
  /// Every running sequence had its turn.
  virtual void step() {}
  /// What the judge observed of an operation; before anything else is done about it.
  virtual void answered(const Op& /*op*/, const Observation& /*seen*/, Labels& /*labels*/) {}
  /// The slot whose append an operation is, or nothing.
  [[nodiscard]] virtual std::optional<std::int64_t> appends_to(const Op& op) const = 0;

  template <class T>
  void emit(T op) {
    queue_.push_back({Op(op_kind<T>(), std::make_shared<const T>(std::move(op))), std::nullopt});
  }
  /// An operation that must return just this.
  template <class T>
  void emit(T op, typename T::Returns returns) {
    queue_.push_back(
        {Op::of(std::move(op)),
         Observation{.returns = std::make_shared<const typename T::Returns>(std::move(returns))}});
  }
  /// Forgets the operations that were emitted and not yet given.
  void drop_emitted() { queue_.clear(); }
  [[nodiscard]] Schedule& schedule() { return schedule_; }
  [[nodiscard]] const LoweringPolicy& policy() const { return policy_; }
  [[nodiscard]] Tagger& tagger() { return tagger_; }

 private:
  void lower(const Action& action);

  LoweringPolicy policy_;
  Schedule schedule_;
  Tagger tagger_;
  struct Queued {
    Op op;
    std::optional<Observation> expected;
  };
  std::deque<Queued> queue_;
  std::optional<Observation> expected_;
};

}  // namespace kvo::traces
