// reference/sampling/pipeline.hpp: the reference of contract `sampling`, as functions.
#pragma once

#include "reference/sampling/sampler.hpp"

namespace kvo::sampling {

/// As the methods of Sampler; in place.
void apply_temperature(std::span<double> logits, double temperature);
void apply_top_k(std::span<double> logits, std::int64_t k);
void apply_top_p(std::span<double> logits, double p);
void apply_repetition_penalty(std::span<double> logits, std::span<const std::int64_t> generated,
                              double penalty);
[[nodiscard]] std::vector<double> softmax(std::span<const double> logits);
[[nodiscard]] std::int64_t argmax(std::span<const double> logits);
/// Requires  logits.
[[nodiscard]] std::int64_t draw(std::span<const double> logits, Random& random);

/// As Sampler::sample.
/// Errors  as of check_logits.
[[nodiscard]] Result<std::int64_t> sample(const StridedView& logits, const SamplingConfig& config,
                                          std::span<const std::int64_t> generated, Random& random,
                                          QuirkSet<Quirk> quirks);
/// The same of a whole tensor.
/// Errors  as of check_logits.
[[nodiscard]] inline Result<std::int64_t> sample(const Tensor& logits, const SamplingConfig& config,
                                                 std::span<const std::int64_t> generated,
                                                 Random& random, QuirkSet<Quirk> quirks) {
  return sample(view_of(logits), config, generated, random, quirks);
}

/// A sampler made of these functions.
[[nodiscard]] std::unique_ptr<Sampler> make_pipeline(QuirkSet<Quirk> quirks);

}  // namespace kvo::sampling
