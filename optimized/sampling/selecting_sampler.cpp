#include "optimized/sampling/selecting_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>

#include "optimized/sampling/selection.hpp"
#include "reference/contract/values/exponential.hpp"

namespace kvo::optimized {
namespace {

using sampling::Quirk;
using sampling::Random;
using sampling::SamplingConfig;

constexpr double kCut = -std::numeric_limits<double>::infinity();

// A logit that may still be chosen; everything else of its row is cut.
struct Candidate {
  std::int64_t index;
  double logit;
};

// The last position of batch row 0, with the logits that a penalty has changed apart.
class Row {
 public:
  Row(const StridedView& logits, const SamplingConfig& config,
      std::span<const std::int64_t> generated) {
    look_at(logits);
    if (sampling::penalty_is_on(config)) penalize(generated, config.repetition_penalty);
  }

  [[nodiscard]] std::size_t size() const { return cells_.size(); }
  [[nodiscard]] double front() const {
    return touched_.empty() || touched_.front().index != 0 ? static_cast<double>(cells_.front())
                                                           : touched_.front().logit;
  }
  // Cells by blocks, those that the penalty has changed passed over. Refers to this row.
  [[nodiscard]] Blocks<float> blocks() const {
    std::vector<std::size_t> skipped;
    skipped.reserve(touched_.size());
    for (const Candidate& one : touched_) skipped.push_back(static_cast<std::size_t>(one.index));
    return Blocks<float>(cells_, std::move(skipped));
  }
  // What blocks() passes over, by index.
  [[nodiscard]] std::span<const Candidate> touched() const { return touched_; }
  [[nodiscard]] std::vector<double> copied() const {
    std::vector<double> copy(cells_.begin(), cells_.end());
    for (const Candidate& one : touched_) copy[static_cast<std::size_t>(one.index)] = one.logit;
    return copy;
  }

 private:
  void look_at(const StridedView& logits) {
    const auto width = static_cast<std::int64_t>(dtype_bytes(logits.dtype));
    const std::byte* from = logits.data + (logits.shape[1] - 1) * logits.strides[1] * width;
    const auto count = static_cast<std::size_t>(logits.shape[2]);
    const bool aligned = reinterpret_cast<std::uintptr_t>(from) % alignof(float) == 0;
    if (logits.dtype == DType::kF32 && logits.strides[2] == 1 && aligned) {
      cells_ = {reinterpret_cast<const float*>(from), count};
      return;
    }
    copy_.resize(count);
    for (std::size_t i = 0; i < count; ++i)
      copy_[i] = load_element(logits.dtype,
                              from + static_cast<std::int64_t>(i) * logits.strides[2] * width);
    cells_ = copy_;
  }
  // Ids that occur more than once lie side by side when sorted: their penalties compound.
  void penalize(std::span<const std::int64_t> generated, double penalty) {
    std::vector<std::int64_t> ids(generated.begin(), generated.end());
    std::ranges::sort(ids);
    for (const std::int64_t id : ids) {
      if (id < 0 || id >= std::ssize(cells_)) continue;
      if (touched_.empty() || touched_.back().index != id)
        touched_.push_back({id, static_cast<double>(cells_[static_cast<std::size_t>(id)])});
      touched_.back().logit = sampling::penalized(touched_.back().logit, penalty);
    }
  }

  std::vector<float> copy_;  // where the cells are not floats side by side
  std::span<const float> cells_;
  std::vector<Candidate> touched_;  // by index
};

// Logits of a row that are no less than `floor`, by index.
std::vector<Candidate> reaching(const Row& row, const Blocks<float>& blocks, double floor) {
  std::vector<Candidate> found;
  blocks.for_each_reaching([&] { return floor; },
                           [&](std::size_t index, double logit) {
                             found.push_back({static_cast<std::int64_t>(index), logit});
                           });
  const auto untouched = std::ssize(found);
  for (const Candidate& one : row.touched())
    if (one.logit >= floor) found.push_back(one);
  std::ranges::inplace_merge(found, found.begin() + untouched, {}, &Candidate::index);
  return found;
}

std::int64_t greedy(const Row& row) {
  const Blocks<float> blocks = row.blocks();
  double largest = blocks.largest();
  for (const Candidate& one : row.touched()) largest = std::max(largest, one.logit);
  if (largest == kCut) return 0;
  return reaching(row, blocks, largest).front().index;
}

// The smallest number whose quotient is no less than `quotient`, that of `number`; nothing if it is
// not close to it, since quotients are infinite or have lost digits.
std::optional<double> smallest_reaching(double number, double divisor, double quotient) {
  constexpr int kSteps = 8;
  for (int step = 0; step < kSteps; ++step) {
    const double below = std::nextafter(number, kCut);
    if (below / divisor < quotient) return number;
    number = below;
  }
  return std::nullopt;
}

template <class Number>
void offer_all(const Blocks<Number>& blocks, KthLargest& threshold) {
  blocks.for_each_reaching([&] { return threshold.floor(); },
                           [&](std::size_t /*index*/, double logit) { threshold.offer(logit); });
}

// What temperature and top-k leave; nothing where a step over the whole row is needed: without
// top-k, and where quotients are not finite or too small to tell logits apart.
std::optional<std::vector<Candidate>> top_k(const Row& row, const SamplingConfig& config) {
  if (config.top_k <= 0 || config.top_k >= static_cast<std::int64_t>(row.size()))
    return std::nullopt;
  const Blocks<float> blocks = row.blocks();
  const auto k = static_cast<std::size_t>(config.top_k);
  KthLargest threshold(k, blocks.floor_of(k));
  for (const Candidate& one : row.touched()) threshold.offer(one.logit);
  offer_all(blocks, threshold);
  const double kth = threshold.value();
  const double quotient = kth / config.temperature;
  if (!std::isfinite(quotient)) return std::nullopt;
  const auto floor = smallest_reaching(kth, config.temperature, quotient);
  if (!floor) return std::nullopt;
  std::vector<Candidate> kept = reaching(row, blocks, *floor);
  for (Candidate& one : kept) {
    one.logit /= config.temperature;
    if (!std::isfinite(one.logit)) return std::nullopt;
  }
  return kept;
}

// Probabilities of finite logits.
std::vector<double> probabilities_of(std::span<const Candidate> kept) {
  double largest = kCut;
  for (const Candidate& one : kept) largest = std::max(largest, one.logit);
  std::vector<double> probabilities(kept.size());
  double sum = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    probabilities[i] = exponential(kept[i].logit - largest);
    sum += probabilities[i];
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

std::vector<std::uint32_t> counted(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<Candidate> top_p(std::vector<Candidate> kept, double p) {
  if (!(p > 0 && p < 1)) return kept;
  const std::vector<double> probabilities = probabilities_of(kept);
  std::vector<std::uint32_t> order = counted(kept.size());
  order.resize(reach(probabilities, order, p));
  std::ranges::sort(order);
  std::vector<Candidate> fewer;
  fewer.reserve(order.size());
  for (const std::uint32_t i : order) fewer.push_back(kept[i]);
  return fewer;
}

// The first index whose running sum exceeds a random number, if one does.
std::optional<std::size_t> drawn_index(std::span<const double> probabilities, Random& random) {
  const double drawn = sampling::uniform(random);
  double sum = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    sum += probabilities[i];
    if (sum > drawn) return i;
  }
  return std::nullopt;
}

std::int64_t draw_one(std::span<const Candidate> kept, std::size_t vocabulary, Random& random) {
  const auto drawn = drawn_index(probabilities_of(kept), random);
  return drawn ? kept[*drawn].index : static_cast<std::int64_t>(vocabulary) - 1;
}

}  // namespace

void SelectingSampler::apply_temperature(std::span<double> logits, double temperature) const {
  if (temperature <= 0) return;
  for (double& value : logits) value = sampling::canonical(value / temperature);
}

void SelectingSampler::apply_top_k(std::span<double> logits, std::int64_t k) const {
  if (k <= 0 || k >= std::ssize(logits)) return;
  const Blocks<double> blocks(logits);
  KthLargest threshold(static_cast<std::size_t>(k), blocks.floor_of(static_cast<std::size_t>(k)));
  offer_all(blocks, threshold);
  const double kth = threshold.value();
  // Where fewer than k are above -inf the k-th largest may be a NaN, and then nothing is below it.
  const auto is_nan = [](double value) { return std::isnan(value); };
  if (kth == kCut && std::ssize(logits) - std::ranges::count_if(logits, is_nan) < k) return;
  for (double& value : logits)
    if (!(value >= kth)) value = kCut;
}

void SelectingSampler::apply_top_p(std::span<double> logits, double p) const {
  if (!(p > 0 && p < 1)) return;
  std::vector<std::uint32_t> order = counted(logits.size());
  const std::size_t kept = reach(softmax(logits), order, p);
  for (const std::uint32_t i : std::span(order).subspan(kept)) logits[i] = kCut;
}

void SelectingSampler::apply_repetition_penalty(std::span<double> logits,
                                                std::span<const std::int64_t> generated,
                                                double penalty) const {
  for (const std::int64_t id : generated) {
    if (id < 0 || id >= std::ssize(logits)) continue;
    double& value = logits[static_cast<std::size_t>(id)];
    value = sampling::penalized(value, penalty);
  }
}

std::vector<double> SelectingSampler::softmax(std::span<const double> logits) const {
  if (logits.empty()) return {};
  const double largest =
      std::isnan(logits.front()) ? logits.front() : Blocks<double>(logits).largest();
  std::vector<double> probabilities(logits.size(), 1 / static_cast<double>(logits.size()));
  if (largest == kCut) return probabilities;
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    probabilities[i] = exponential(logits[i] - largest);
    sum += probabilities[i];
  }
  if (sum > 0)
    for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

std::int64_t SelectingSampler::argmax(std::span<const double> logits) const {
  const double largest = Blocks<double>(logits).largest();
  if (largest == kCut) return 0;
  return std::ranges::find(logits, largest) - logits.begin();
}

Result<std::int64_t> SelectingSampler::sample_from_distribution(std::span<const double> logits,
                                                                Random& random) const {
  if (logits.empty())
    return fail(quirks_.has(Quirk::kEmptyVocabularyAborts) ? Code::kPrecondition : Code::kBadShape,
                "no logits");
  return static_cast<std::int64_t>(
      drawn_index(softmax(logits), random).value_or(logits.size() - 1));
}

Result<std::int64_t> SelectingSampler::sample(const StridedView& logits,
                                              const SamplingConfig& config,
                                              std::span<const std::int64_t> generated,
                                              Random& random) const {
  if (const Status usable = sampling::check_logits(logits, config, quirks_); !usable)
    return usable.error();
  const Row row(logits, config, generated);
  if (config.temperature <= 0) {
    const bool first_wins = !sampling::penalty_is_on(config) && quirks_.has(Quirk::kFirstNanWins) &&
                            std::isnan(row.front());
    return first_wins ? 0 : greedy(row);
  }
  if (auto kept = top_k(row, config))
    return draw_one(top_p(std::move(*kept), config.top_p), row.size(), random);
  std::vector<double> all = row.copied();
  apply_temperature(all, config.temperature);
  apply_top_k(all, config.top_k);
  apply_top_p(all, config.top_p);
  return sample_from_distribution(all, random);
}

}  // namespace kvo::optimized
