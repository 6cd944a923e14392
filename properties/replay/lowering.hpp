// properties/replay/lowering.hpp: how requests become operations of a cache, by a declared policy.
//
// Policy: the steps of properties/replay/schedule.hpp. properties/replay/engine.hpp carries them
// out. The file of a contract says how its caches save, cut and end a sequence.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>

#include "properties/replay/schedule.hpp"
#include "reference/contract/subject/op_stream.hpp"
#include "reference/contract/subject/subject.hpp"

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

  /// Tokens of a prompt, of an answer, and of both, at the scale of the input. @{
  [[nodiscard]] std::int64_t prompt(const Request& request) const {
    return scaled(request.input_tokens, schedule.scale);
  }
  [[nodiscard]] std::int64_t answer(const Request& request) const {
    return scaled(request.output_tokens, schedule.scale);
  }
  [[nodiscard]] std::int64_t whole(const Request& request) const {
    return prompt(request) + answer(request);
  }
  /// @}
  /// Most tokens that a sequence of these requests holds, a draft included.
  [[nodiscard]] std::int64_t longest_sequence() const;
  /// Tokens of all requests; 2^62 at most.
  [[nodiscard]] std::int64_t tokens() const;

  /// The same input with at most so many slots.
  [[nodiscard]] LoweringInput with_slots(std::int64_t most) const;
  /// The same input without drafts.
  [[nodiscard]] LoweringInput without_drafts() const;
};

/// Blocks of so many tokens that sequences of a case need.
struct Demand {
  std::int64_t longest = 0;  ///< of one sequence, with a draft
  std::int64_t most = 0;     ///< of as many of the longest sequences as there are slots
  std::int64_t all = 0;      ///< of all sequences
};
[[nodiscard]] Demand demand_of(const LoweringInput& input, std::int64_t block_size);

/// The cost of which 1 is ten million tokens, 2^20 of them in one sequence, or a thousand million
/// rows shown, whichever is most.
[[nodiscard]] double usual_cost(const LoweringInput& input);

/// How requests become operations of one cache kind. A kind may have several, each with cases of
/// its own: the same requests on caches of another make.
struct Lowering {
  const CacheKind* kind;
  Setup (*setup)(const LoweringInput& input);
  std::unique_ptr<OpStream> (*lower)(const LoweringInput& input);
  /// What a replay of `input.requests` at `input.schedule.scale` costs: 1 is half a minute a
  /// subject, on rows of sixteen elements.
  std::function<double(const LoweringInput& input)> cost = usual_cost;
  /// Among several of the kind: "ring".
  std::string_view name = {};
  /// A case has so many times `requests_per_case`: what a cache keeps of earlier requests tells in
  /// long cases only.
  std::int64_t windows = 1;

  /// "snapshot.trie", or with a name "snapshot.trie ring".
  [[nodiscard]] std::string full_name() const;
};

/// What a replay costs where each call works on all rows of its sequence, in parts of the cost of
/// 12,000 requests: `other_calls` of a request beside its chunks and decoded tokens, and rows a
/// request that may be worked on, on average.
[[nodiscard]] std::function<double(const LoweringInput& input)> cost_by(double other_calls,
                                                                        double rows_a_request);

/// Lowering::setup from a function that returns a config.
template <auto kConfig, auto... kArguments>
[[nodiscard]] Setup setup_by(const LoweringInput& input) {
  return {.config = Record::of(kConfig(input, kArguments...))};
}
/// Lowering::setup of a kind without a config.
[[nodiscard]] inline Setup no_setup(const LoweringInput& /*input*/) {
  return {};
}
/// Lowering::lower from a class of streams.
template <class Stream, auto... kArguments>
[[nodiscard]] std::unique_ptr<OpStream> lower_by(const LoweringInput& input) {
  return std::make_unique<Stream>(input, kArguments...);
}

/// What lengths are divided by: the smallest power of two by which the lowering costs at most 1;
/// traces::kMaxTokens if none does. Larger rows cost more, in proportion to the elements of all
/// layers. `input.schedule.scale` plays no part.
[[nodiscard]] std::int64_t scale_of(const Lowering& lowering, const LoweringInput& input);

}  // namespace kvo::replay
