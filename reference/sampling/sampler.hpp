// reference/sampling/sampler.hpp: the contract `sampling`: from logits to the next token.
//
// Words    logits      one number a token of the vocabulary, in double precision; -inf: cut.
//          generated   ids of the tokens that were generated so far, the prompt not among them.
//          greedy      temperature <= 0: the largest logit is chosen, and nothing is drawn.
// Numbers  sums run in the order that the rules name, products are not fused, and the exponential
//          is our own, so that choices are the same on every machine. A NaN that is returned has no
//          sign and no payload. Where values are ordered NaN stands below every number.
// Source   rules ZF-90 to ZF-99.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reference/contract/describe/describe.hpp"
#include "reference/contract/values/random.hpp"
#include "reference/contract/values/result.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/sampling/quirks.hpp"

namespace kvo::sampling {

using traces::Random;

/// How tokens are chosen, and when a generation ends; the defaults are rule ZF-99.
struct SamplingConfig {
  double temperature = 1;
  std::int64_t top_k = 0;
  double top_p = 1;
  double repetition_penalty = 1;
  std::int64_t max_new_tokens = 256;
  std::vector<std::int64_t> stop_token_ids = {};
  std::vector<std::string> stop_strings = {};
};
KVO_DESCRIBE(
    SamplingConfig, (temperature, "what logits are divided by; 0 or less: the largest is chosen"),
    (top_k, "how many of the largest logits may be drawn; 0 or less: all"),
    (top_p, "probability that the tokens that may be drawn reach; outside of (0, 1): all"),
    (repetition_penalty, "what logits of generated tokens are divided by; 1, 0, less: off"),
    (max_new_tokens, "most tokens of a generation; 0 or less: 256"),
    (stop_token_ids, "ids that end a generation"), (stop_strings, "texts that end a generation"))

/// Whether a penalty has an effect (ZF-91).
[[nodiscard]] inline bool penalty_is_on(const SamplingConfig& config) {
  return config.repetition_penalty > 0 && config.repetition_penalty != 1;
}

/// The shape of logits [batch, seq, vocab] that a token can be sampled from, whose vocabulary may
/// be empty only where the answer is then token 0 (ZF-92).
/// Errors  kBadShape rank: not three axes; kNotSupported: logits of integers; kBadShape, with
///         kNoPositionAborts and kEmptyVocabularyAborts kPrecondition: batch or seq of 0, an empty
///         vocabulary.
[[nodiscard]] Status check_logits(const StridedView& logits, const SamplingConfig& config,
                                  QuirkSet<Quirk> quirks);

/// The steps of sampling, each by itself, and the whole.
/// Threads  const, so calls may run side by side with a Random each.
class Sampler {
 public:
  virtual ~Sampler() = default;

  /// Divides by `temperature`; does nothing for 0 or less (ZF-94).
  virtual void apply_temperature(std::span<double> logits, double temperature) const = 0;
  /// What is below the k-th largest becomes -inf; does nothing for k <= 0 and k >= size (ZF-95).
  virtual void apply_top_k(std::span<double> logits, std::int64_t k) const = 0;
  /// What does not belong to the most probable tokens whose sum reaches p becomes -inf; does
  /// nothing for p <= 0 and p >= 1 (ZF-96).
  virtual void apply_top_p(std::span<double> logits, double p) const = 0;
  /// For each id, as often as it occurs: above 0 is divided by `penalty`, else multiplied; ids
  /// outside the vocabulary are passed over (ZF-93).
  virtual void apply_repetition_penalty(std::span<double> logits,
                                        std::span<const std::int64_t> generated,
                                        double penalty) const = 0;
  /// Probabilities (ZF-97).
  [[nodiscard]] virtual std::vector<double> softmax(std::span<const double> logits) const = 0;
  /// The first index of the largest logit; 0 where nothing is above -inf (ZF-92).
  [[nodiscard]] virtual std::int64_t argmax(std::span<const double> logits) const = 0;
  /// An index drawn with its probability (ZF-98); takes one number of `random`.
  /// Errors  kBadShape, with kEmptyVocabularyAborts kPrecondition: no logits.
  [[nodiscard]] virtual Result<std::int64_t> sample_from_distribution(
      std::span<const double> logits, Random& random) const = 0;
  /// The next token from the last position of batch row 0 of `logits` [batch, seq, vocab]
  /// (ZF-90 to ZF-92). Greedy choices take nothing of `random`, others one number.
  /// Errors  as of check_logits.
  [[nodiscard]] virtual Result<std::int64_t> sample(const StridedView& logits,
                                                    const SamplingConfig& config,
                                                    std::span<const std::int64_t> generated,
                                                    Random& random) const = 0;
};

/// Makes a sampler.
using MakeSampler = std::function<std::unique_ptr<Sampler>(QuirkSet<Quirk> quirks)>;

/// The value with every NaN made the one without sign and payload, since processors differ in them.
[[nodiscard]] inline double canonical(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}
/// One step of a penalty (ZF-93).
[[nodiscard]] inline double penalized(double value, double penalty) {
  return canonical(value > 0 ? value / penalty : value * penalty);
}
/// Whether `a` stands above `b`: as numbers do, and NaN below all of them.
[[nodiscard]] inline bool is_above(double a, double b) {
  return a > b || (std::isnan(b) && !std::isnan(a));
}
/// Uniform in [0, 1), a multiple of 2^-53.
[[nodiscard]] double uniform(Random& random);

}  // namespace kvo::sampling
