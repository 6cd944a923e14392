// The laws of contract `sampling`.
#include "properties/campaign/laws.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "properties/campaign/metamorphic.hpp"
#include "properties/contract_parts.hpp"
#include "reference/sampling/operations.hpp"

namespace kvo::sampling {
namespace {

constexpr std::size_t kRank = 3;

bool is_sampling(const CacheKind& kind) {
  return &kind == &pipeline_kind();
}

// ---- sample_is_its_steps ----

std::vector<double> doubles(const Tensor& logits) {
  return {logits.floats().begin(), logits.floats().end()};
}

// Only the last position of the first row; nothing where there is none.
std::optional<Tensor> last_position(const Sample& op) {
  const Shape& shape = op.logits.shape;
  if (shape.size() != kRank || shape[0] < 1 || shape[1] < 1 || shape[2] < 1) return std::nullopt;
  return axis_range(axis_range(op.logits, 0, 0, 1), 1, shape[1] - 1, shape[1]);
}

Variation by_steps(const Drawn& drawn) {
  Variation varied;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const auto* op = drawn.script[at].as<Sample>();
    if (op == nullptr || !drawn.succeeded(at)) continue;
    std::optional<Tensor> last = last_position(*op);
    if (!last) continue;
    const SamplingConfig& config = op->sampling;
    const bool one_step = last->dtype == DType::kF32 && !penalty_is_on(config);
    const bool all_may_be_drawn = config.temperature == 1 && config.top_k <= 0 && config.top_p <= 0;
    // A NaN at index 0 is a choice of the original only (ZF-91).
    if (one_step && config.temperature <= 0 && !std::isnan(last->floats().front()))
      varied.pair(at, Op::of(Argmax{doubles(*last)}));
    else if (one_step && all_may_be_drawn)
      varied.pair(at, Op::of(SampleFromDistribution{doubles(*last), op->seed}));
    else
      varied.pair(at, Op::of(Sample{std::move(*last), config, op->generated, op->seed}));
  }
  return varied;
}

const MetamorphicLaw& sample_is_its_steps() {
  static const MetamorphicLaw kLaw(
      "sample_is_its_steps",
      "only the last position of the first row counts; greedy it is argmax, plain it is a draw",
      kLongScript, {.how = "step by step", .applies = is_sampling, .transformation = by_steps});
  return kLaw;
}

// ---- order_of_generated_ids ----

std::vector<std::int64_t> backwards(std::vector<std::int64_t> ids) {
  std::ranges::reverse(ids);
  ids.insert(ids.begin(), -1);
  ids.push_back(std::int64_t{1} << 40);
  return ids;
}

Variation ids_backwards(const Drawn& drawn) {
  Variation varied;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    if (const auto* op = drawn.script[at].as<ApplyRepetitionPenalty>())
      varied.pair(
          at, Op::of(ApplyRepetitionPenalty{op->logits, backwards(op->generated), op->penalty}));
    if (const auto* op = drawn.script[at].as<Sample>())
      varied.pair(at, Op::of(Sample{op->logits, op->sampling, backwards(op->generated), op->seed}));
  }
  return varied;
}

const MetamorphicLaw& order_of_generated_ids() {
  static const MetamorphicLaw kLaw(
      "order_of_generated_ids",
      "neither the order of generated ids shows, nor ids outside the vocabulary", kLongScript,
      {.how = "with the ids in reverse order",
       .applies = is_sampling,
       .transformation = ids_backwards});
  return kLaw;
}

// ---- order_of_vocabulary ----

std::vector<double> mirrored(std::vector<double> logits) {
  std::ranges::reverse(logits);
  return logits;
}

// The same for a list and the list backwards.
Observation of_either_order(const Observation& seen) {
  const auto* changed = seen.returns ? seen.returns.get_if<Logits>() : nullptr;
  if (changed == nullptr) return seen;
  std::vector<double> other = mirrored(changed->logits);
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  const bool first =
      std::ranges::lexicographical_compare(changed->logits, other, std::less<>(), bits, bits);
  if (first) other = changed->logits;
  return {.error = seen.error, .returns = Record::of(Logits{std::move(other)})};
}

// The same for an index from the front and from the back.
Canonical of_either_end(std::size_t size) {
  return [last = static_cast<std::int64_t>(size) - 1](const Observation& seen) -> Observation {
    const auto* chosen = seen.returns ? seen.returns.get_if<Token>() : nullptr;
    if (chosen == nullptr) return seen;
    return {.error = seen.error,
            .returns = Record::of(Token{std::min(chosen->token, last - chosen->token)})};
  };
}

bool has_one_largest(const std::vector<double>& logits) {
  const std::vector<double> other = mirrored(logits);
  const auto above = [](double a, double b) { return is_above(b, a); };
  const auto from_front = std::ranges::max_element(logits, above) - logits.begin();
  const auto from_back = std::ranges::max_element(other, above) - other.begin();
  return !logits.empty() && from_front + from_back + 1 == std::ssize(logits);
}

Variation vocabulary_backwards(const Drawn& drawn) {
  Variation varied;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    if (const auto* op = drawn.script[at].as<ApplyTopK>())
      varied.pair(at, Op::of(ApplyTopK{mirrored(op->logits), op->k}), of_either_order);
    if (const auto* op = drawn.script[at].as<ApplyTemperature>())
      varied.pair(at, Op::of(ApplyTemperature{mirrored(op->logits), op->temperature}),
                  of_either_order);
    if (const auto* op = drawn.script[at].as<ApplyRepetitionPenalty>()) {
      std::vector<std::int64_t> ids = op->generated;
      for (std::int64_t& id : ids) id = std::ssize(op->logits) - 1 - id;
      varied.pair(at,
                  Op::of(ApplyRepetitionPenalty{mirrored(op->logits), std::move(ids), op->penalty}),
                  of_either_order);
    }
    const auto* op = drawn.script[at].as<Argmax>();
    if (op != nullptr && has_one_largest(op->logits) &&
        std::ranges::any_of(op->logits, [](double value) { return std::isfinite(value); }))
      varied.pair(at, Op::of(Argmax{mirrored(op->logits)}), of_either_end(op->logits.size()));
  }
  return varied;
}

const MetamorphicLaw& order_of_vocabulary() {
  static const MetamorphicLaw kLaw(
      "order_of_vocabulary",
      "with the vocabulary in another order the same tokens are cut, changed and largest",
      kLongScript,
      {.how = "with the vocabulary in reverse order",
       .applies = is_sampling,
       .transformation = vocabulary_backwards});
  return kLaw;
}

// ---- by_definition ----

const LockstepLaw& by_definition() {
  static const LockstepLaw kLaw(
      "sampling_by_definition",
      "probabilities sum to 1; argmax is the largest; top-k leaves the k largest and what equals "
      "them, top-p the fewest that reach p; what is chosen is among them",
      kLongScript, {.oracle = definition_oracle, .compare = false});
  return kLaw;
}

}  // namespace

std::vector<const Law*> laws() {
  return {&by_definition(), &sample_is_its_steps(), &order_of_generated_ids(),
          &order_of_vocabulary()};
}

}  // namespace kvo::sampling
