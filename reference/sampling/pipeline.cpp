#include "reference/sampling/pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "reference/contract/values/exponential.hpp"

namespace kvo::sampling {
namespace {

constexpr double kCut = -std::numeric_limits<double>::infinity();

// The last position of batch row 0 (ZF-90).
std::vector<double> last_row(const StridedView& logits) {
  const std::int64_t begin = (logits.shape[1] - 1) * logits.strides[1];
  const auto bytes = static_cast<std::int64_t>(dtype_bytes(logits.dtype));
  std::vector<double> row(static_cast<std::size_t>(logits.shape[2]));
  for (std::size_t v = 0; v < row.size(); ++v) {
    const std::int64_t at = begin + static_cast<std::int64_t>(v) * logits.strides[2];
    row[v] = load_element(logits.dtype, logits.data + at * bytes);
  }
  return row;
}

class Pipeline final : public Sampler {
 public:
  explicit Pipeline(QuirkSet<Quirk> quirks) : quirks_(quirks) {}

  void apply_temperature(std::span<double> logits, double temperature) const override {
    sampling::apply_temperature(logits, temperature);
  }
  void apply_top_k(std::span<double> logits, std::int64_t k) const override {
    sampling::apply_top_k(logits, k);
  }
  void apply_top_p(std::span<double> logits, double p) const override {
    sampling::apply_top_p(logits, p);
  }
  void apply_repetition_penalty(std::span<double> logits, std::span<const std::int64_t> generated,
                                double penalty) const override {
    sampling::apply_repetition_penalty(logits, generated, penalty);
  }
  [[nodiscard]] std::vector<double> softmax(std::span<const double> logits) const override {
    return sampling::softmax(logits);
  }
  [[nodiscard]] std::int64_t argmax(std::span<const double> logits) const override {
    return sampling::argmax(logits);
  }
  [[nodiscard]] Result<std::int64_t> sample_from_distribution(std::span<const double> logits,
                                                              Random& random) const override {
    if (logits.empty())
      return fail(
          quirks_.has(Quirk::kEmptyVocabularyAborts) ? Code::kPrecondition : Code::kBadShape,
          "no logits");
    return draw(logits, random);
  }
  [[nodiscard]] Result<std::int64_t> sample(const StridedView& logits, const SamplingConfig& config,
                                            std::span<const std::int64_t> generated,
                                            Random& random) const override {
    return sampling::sample(logits, config, generated, random, quirks_);
  }

 private:
  QuirkSet<Quirk> quirks_;
};

}  // namespace

void apply_temperature(std::span<double> logits, double temperature) {
  if (temperature <= 0) return;
  for (double& value : logits) value = canonical(value / temperature);
}

void apply_top_k(std::span<double> logits, std::int64_t k) {
  if (k <= 0 || k >= std::ssize(logits)) return;
  std::vector<double> descending(logits.begin(), logits.end());
  std::ranges::sort(descending, is_above);
  const double threshold = descending[static_cast<std::size_t>(k) - 1];
  for (double& value : logits)
    if (is_above(threshold, value)) value = kCut;
}

void apply_top_p(std::span<double> logits, double p) {
  if (!(p > 0 && p < 1)) return;
  const std::vector<double> probabilities = softmax(logits);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, is_above, [&](std::size_t i) { return probabilities[i]; });
  double sum = 0;
  std::size_t kept = 0;
  while (kept < order.size() && !(sum >= p)) sum += probabilities[order[kept++]];
  for (const std::size_t i : std::span(order).subspan(kept)) logits[i] = kCut;
}

void apply_repetition_penalty(std::span<double> logits, std::span<const std::int64_t> generated,
                              double penalty) {
  for (const std::int64_t id : generated) {
    if (id < 0 || id >= std::ssize(logits)) continue;
    double& value = logits[static_cast<std::size_t>(id)];
    value = penalized(value, penalty);
  }
}

std::vector<double> softmax(std::span<const double> logits) {
  if (logits.empty()) return {};
  double largest = logits.front();
  for (const double value : logits)
    if (value > largest) largest = value;
  std::vector<double> probabilities;
  if (largest == kCut) {
    probabilities.assign(logits.size(), 1 / static_cast<double>(logits.size()));
    return probabilities;
  }
  double sum = 0;
  for (const double value : logits) {
    probabilities.push_back(exponential(value - largest));
    sum += probabilities.back();
  }
  if (sum > 0)
    for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

std::int64_t argmax(std::span<const double> logits) {
  std::int64_t best = 0;
  double largest = kCut;
  for (std::int64_t i = 0; i < std::ssize(logits); ++i) {
    const double value = logits[static_cast<std::size_t>(i)];
    if (!(value > largest)) continue;
    best = i;
    largest = value;
  }
  return best;
}

std::int64_t draw(std::span<const double> logits, Random& random) {
  const std::vector<double> probabilities = softmax(logits);
  const double drawn = uniform(random);
  double sum = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    sum += probabilities[i];
    if (sum > drawn) return static_cast<std::int64_t>(i);
  }
  return std::ssize(probabilities) - 1;
}

Result<std::int64_t> sample(const StridedView& logits, const SamplingConfig& config,
                            std::span<const std::int64_t> generated, Random& random,
                            QuirkSet<Quirk> quirks) {
  if (const Status usable = check_logits(logits, config, quirks); !usable) return usable.error();
  std::vector<double> row = last_row(logits);
  const bool greedy = config.temperature <= 0;
  if (penalty_is_on(config))
    apply_repetition_penalty(row, generated, config.repetition_penalty);
  else if (greedy && std::isnan(row.front()) && quirks.has(Quirk::kFirstNanWins))
    return 0;
  if (greedy) return argmax(row);
  apply_temperature(row, config.temperature);
  apply_top_k(row, config.top_k);
  apply_top_p(row, config.top_p);
  return draw(row, random);
}

std::unique_ptr<Sampler> make_pipeline(QuirkSet<Quirk> quirks) {
  return std::make_unique<Pipeline>(quirks);
}

}  // namespace kvo::sampling
