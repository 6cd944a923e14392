// optimized/sampling/selecting_sampler.hpp: a sampler that looks at the whole vocabulary as seldom
// as it can.
//
// With top-k two passes over the logits find the few that may be drawn, and everything behind works
// on these: what is cut has probability 0 and adds nothing to a sum. Logits that a penalty touches
// are kept beside the row, sorted by id, and no row is copied.
#pragma once

#include "reference/sampling/sampler.hpp"

namespace kvo::optimized {

/// Chooses what the reference chooses, for it computes the same numbers in the same order.
class SelectingSampler final : public sampling::Sampler {
 public:
  explicit SelectingSampler(QuirkSet<sampling::Quirk> quirks) : quirks_(quirks) {}

  void apply_temperature(std::span<double> logits, double temperature) const override;
  void apply_top_k(std::span<double> logits, std::int64_t k) const override;
  void apply_top_p(std::span<double> logits, double p) const override;
  void apply_repetition_penalty(std::span<double> logits, std::span<const std::int64_t> generated,
                                double penalty) const override;
  [[nodiscard]] std::vector<double> softmax(std::span<const double> logits) const override;
  [[nodiscard]] std::int64_t argmax(std::span<const double> logits) const override;
  /// Errors  as of Sampler.
  [[nodiscard]] Result<std::int64_t> sample_from_distribution(
      std::span<const double> logits, sampling::Random& random) const override;
  /// Errors  as of Sampler.
  [[nodiscard]] Result<std::int64_t> sample(const StridedView& logits,
                                            const sampling::SamplingConfig& config,
                                            std::span<const std::int64_t> generated,
                                            sampling::Random& random) const override;

 private:
  QuirkSet<sampling::Quirk> quirks_;
};

}  // namespace kvo::optimized
