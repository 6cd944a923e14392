// The oracle of contract `sampling`: each answer by the definitions (ZF-92 to ZF-98), with the
// exponential of the standard library.
//
// Judged   every operation that succeeds on numbers, -inf among them.
// Skipped  NaN, infinity and results that are not finite; penalties inside `sample`.
// Unseen   sets of top-p that differ by a probability below 1e-9, and which of the tokens that
//          may be drawn is.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "properties/contract_parts.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/sampling/operations.hpp"

namespace kvo::sampling {
namespace {

using Words = std::optional<std::string>;

constexpr double kNone = -std::numeric_limits<double>::infinity();
constexpr double kTiny = 1e-9;  // of probabilities: what rounding adds up to

bool is_number(double value) {
  return std::isfinite(value) || value == kNone;
}
bool are_numbers(std::span<const double> logits) {
  return std::ranges::all_of(logits, is_number);
}

// Probabilities by the definition; of logits that are numbers.
std::vector<double> distribution_of(std::span<const double> logits) {
  if (logits.empty()) return {};
  const double largest = std::ranges::max(logits);
  std::vector<double> parts;
  for (const double value : logits)
    parts.push_back(largest == kNone ? 1 : std::exp(value - largest));
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  for (double& part : parts) part /= sum;
  return parts;
}

// Of each token that is not kept the logit is -inf, of the others it is as it was.
Words wrong_cut(std::span<const double> before, std::span<const double> after) {
  if (before.size() != after.size()) return "another number of logits";
  for (std::size_t i = 0; i < before.size(); ++i)
    if (after[i] != before[i] && after[i] != kNone)
      return "logit " + std::to_string(i) + " is neither kept nor cut";
  return std::nullopt;
}

Words wrong_top_k(std::span<const double> before, std::span<const double> after, std::int64_t k) {
  if (auto words = wrong_cut(before, after)) return words;
  if (k <= 0 || k >= std::ssize(before))
    return std::ranges::equal(before, after) ? Words() : "cuts though k takes all";
  std::vector<double> falling(before.begin(), before.end());
  std::ranges::sort(falling, std::greater());
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == kNone) continue;
    const auto above =
        std::ranges::lower_bound(falling, before[i], std::greater()) - falling.begin();
    if ((above < k) != (after[i] != kNone))
      return "logit " + std::to_string(i) + " has " + std::to_string(above) + " above it";
  }
  return std::nullopt;
}

Words wrong_top_p(std::span<const double> before, std::span<const double> after, double p) {
  if (auto words = wrong_cut(before, after)) return words;
  if (p <= 0 || p >= 1)
    return std::ranges::equal(before, after) ? Words() : "cuts though p takes all";
  const std::vector<double> probabilities = distribution_of(before);
  double mass = 0;
  double smallest = 1;
  double largest_cut = 0;
  std::set<double> cut;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == kNone) continue;
    if (after[i] == kNone) {
      largest_cut = std::max(largest_cut, probabilities[i]);
      cut.insert(before[i]);
      continue;
    }
    mass += probabilities[i];
    smallest = std::min(smallest, probabilities[i]);
    if (cut.contains(before[i])) return "of equal logits the later one is kept";
  }
  if (!before.empty() && std::ranges::max(before) == kNone) return std::nullopt;
  if (mass < p - kTiny && largest_cut > kTiny) return "keeps too little: " + std::to_string(mass);
  if (mass - smallest >= p + kTiny) return "keeps too much: " + std::to_string(mass);
  if (largest_cut > smallest * (1 + kTiny)) return "cuts a more probable token than it keeps";
  return std::nullopt;
}

class Definitions final : public Oracle {
 public:
  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    if (seen.error) return std::nullopt;
    Words words;
    visit_op(Ops(), op, [&](const auto& operation) { words = judge(operation, seen); });
    return words;
  }

 private:
  // Whether an operation can be judged, counted.
  bool can_judge(bool numbers) {
    ++(numbers ? counts_.judged : counts_.skipped);
    return numbers;
  }

  Words judge(const ApplyTemperature& op, const Observation& seen) {
    const std::vector<double>& after = seen.as<Logits>().logits;
    if (!can_judge(are_numbers(op.logits) && are_numbers(after))) return std::nullopt;
    if (after.size() != op.logits.size()) return "another number of logits";
    for (std::size_t i = 0; i < after.size(); ++i) {
      const double want = op.temperature <= 0 ? op.logits[i] : op.logits[i] / op.temperature;
      if (after[i] != want) return "logit " + std::to_string(i) + " is not divided";
    }
    return std::nullopt;
  }
  Words judge(const ApplyTopK& op, const Observation& seen) {
    if (!can_judge(are_numbers(op.logits))) return std::nullopt;
    return wrong_top_k(op.logits, seen.as<Logits>().logits, op.k);
  }
  Words judge(const ApplyTopP& op, const Observation& seen) {
    if (!can_judge(are_numbers(op.logits))) return std::nullopt;
    return wrong_top_p(op.logits, seen.as<Logits>().logits, op.p);
  }
  Words judge(const ApplyRepetitionPenalty& op, const Observation& seen) {
    if (!can_judge(are_numbers(op.logits) && op.penalty > 0)) return std::nullopt;
    const std::vector<double>& after = seen.as<Logits>().logits;
    std::map<std::int64_t, std::int64_t> counts;
    for (const std::int64_t token : op.generated) ++counts[token];
    for (std::size_t i = 0; i < after.size(); ++i) {
      const std::int64_t times = counts[static_cast<std::int64_t>(i)];
      const double by = std::pow(op.penalty, static_cast<double>(times));
      const double want = op.logits[i] > 0 ? op.logits[i] / by : op.logits[i] * by;
      const bool close = std::abs(after[i] - want) <= kTiny * std::abs(want);
      if (after[i] != want && !close)
        return "logit " + std::to_string(i) + " is not penalized " + std::to_string(times) +
               " times";
    }
    return std::nullopt;
  }
  Words judge(const Softmax& op, const Observation& seen) {
    if (!can_judge(are_numbers(op.logits))) return std::nullopt;
    const std::vector<double>& probs = seen.as<Softmax::Returns>().probs;
    if (probs.size() != op.logits.size()) return "another number of probabilities";
    const std::vector<double> want = distribution_of(op.logits);
    for (std::size_t i = 0; i < probs.size(); ++i)
      if (!(std::abs(probs[i] - want[i]) <= kTiny)) return "probability " + std::to_string(i);
    const double sum = std::accumulate(probs.begin(), probs.end(), 0.0);
    if (!probs.empty() && !(std::abs(sum - 1) <= kTiny)) return "sums to " + std::to_string(sum);
    return std::nullopt;
  }
  Words judge(const Argmax& op, const Observation& seen) {
    if (!can_judge(are_numbers(op.logits))) return std::nullopt;
    const auto largest = std::ranges::max_element(op.logits);  // the first of equal ones
    const std::int64_t want = op.logits.empty() ? 0 : largest - op.logits.begin();
    return seen.as<Token>().token == want ? Words() : "not the first of the largest";
  }
  Words judge(const SampleFromDistribution& op, const Observation& seen) {
    if (!can_judge(are_numbers(op.logits))) return std::nullopt;
    return wrong_token(seen.as<Token>().token, op.logits);
  }
  Words judge(const Sample& op, const Observation& seen) {
    const SamplingConfig& config = op.sampling;
    const std::int64_t token = seen.as<Token>().token;
    const bool plain = op.logits.dtype == DType::kF32 && !penalty_is_on(config);
    std::vector<double> row = plain ? last_position(op.logits) : std::vector<double>();
    if (!can_judge(plain && are_numbers(row))) return std::nullopt;
    if (config.temperature <= 0) {
      const std::int64_t want = std::ranges::max_element(row) - row.begin();
      return token == want ? Words() : "not the first of the largest";
    }
    for (double& value : row) value /= config.temperature;
    if (!are_numbers(row)) return std::nullopt;
    if (auto words = wrong_token(token, row)) return words;
    return wrong_choice(token, row, config);
  }
  Words judge(const DefaultSamplingConfig& /*op*/, const Observation& seen) {
    can_judge(true);
    const auto& config = seen.as<SamplingConfig>();
    const bool draws_all = config.temperature == 1 && config.top_k == 0 && config.top_p == 1;
    return draws_all && !penalty_is_on(config) ? Words() : "the default is not a plain draw";
  }

  [[nodiscard]] static std::vector<double> last_position(const Tensor& logits) {
    const auto vocabulary = static_cast<std::size_t>(logits.shape[2]);
    const auto end = static_cast<std::size_t>(logits.shape[1]) * vocabulary;
    const std::span<const float> row = logits.floats().subspan(end - vocabulary, vocabulary);
    return {row.begin(), row.end()};
  }
  // The last token may be drawn whatever its logit, where the sum of all stays below 1.
  [[nodiscard]] static Words wrong_token(std::int64_t token, std::span<const double> logits) {
    if (token < 0 || token >= std::ssize(logits)) return "outside of the vocabulary";
    if (token + 1 == std::ssize(logits)) return std::nullopt;
    const std::vector<double> probabilities = distribution_of(logits);
    return probabilities[static_cast<std::size_t>(token)] > 0 ? Words() : "of probability 0";
  }
  // Whether the token is among those that top-k and top-p leave.
  [[nodiscard]] static Words wrong_choice(std::int64_t token, std::span<const double> row,
                                          const SamplingConfig& config) {
    const double logit = row[static_cast<std::size_t>(token)];
    if (token + 1 == std::ssize(row) || std::ranges::max(row) == kNone) return std::nullopt;
    const auto above = std::ranges::count_if(row, [&](double v) { return v > logit; });
    const bool selects = config.top_k > 0 && config.top_k < std::ssize(row);
    if (selects && above >= config.top_k) return "not among the k largest";
    if (config.top_p <= 0 || config.top_p >= 1) return std::nullopt;
    std::vector<double> falling(row.begin(), row.end());
    std::ranges::sort(falling, std::greater<>());
    if (selects) {
      const double least = falling[static_cast<std::size_t>(config.top_k) - 1];
      std::erase_if(falling, [&](double v) { return v < least; });
    }
    const std::vector<double> probabilities = distribution_of(falling);
    const auto own = std::ranges::find(falling, logit) - falling.begin();
    const double limit = probabilities[static_cast<std::size_t>(own)] * (1 + kTiny);
    double mass = 0;  // of what is more probable, not only larger
    for (const double probability : probabilities)
      if (probability > limit) mass += probability;
    return mass < config.top_p + kTiny ? Words() : "behind what top-p leaves";
  }
};

}  // namespace

std::unique_ptr<Oracle> definition_oracle(const CacheKind& kind, const Setup& /*setup*/) {
  if (&kind != &pipeline_kind()) return nullptr;
  return std::make_unique<Definitions>();
}

}  // namespace kvo::sampling
