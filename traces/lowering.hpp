// traces/lowering.hpp: requests turned into operations of a cache, by a declared policy.
//
// Policy, version 1: the schedule of traces/schedule.hpp; a slot is one cache, every row carries
// tags of its own, each layer is appended and read in turn. How a kind marks, cuts and ends a
// sequence stands in its file (lower_*.cpp).
#pragma once

#include <cstdint>
#include <deque>
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
};

/// Every lowering; a new one is its own file and one line in lowering.cpp.
[[nodiscard]] std::span<const Lowering> lowerings();
/// The lowering of a kind, or null.
[[nodiscard]] const Lowering* lowering_of(const CacheKind& kind);

/// The largest lengths' divisor that keeps `requests` within `most_tokens` in all, at least 1.
[[nodiscard]] std::int64_t scale_for(std::span<const Request> requests, std::int64_t most_tokens);

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
  /// The slot whose append an operation is, or nothing.
  [[nodiscard]] virtual std::optional<std::int64_t> appends_to(const Op& op) const = 0;

  template <class T>
  void emit(T op) {
    queue_.push_back({Op::of(std::move(op)), std::nullopt});
  }
  /// An operation that must return just this.
  template <class T>
  void emit(T op, typename T::Returns returns) {
    queue_.push_back(
        {Op::of(std::move(op)),
         Observation{.returns = std::make_shared<const typename T::Returns>(std::move(returns))}});
  }
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
