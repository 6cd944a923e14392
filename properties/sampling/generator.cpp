// Random scripts for sampling.pipeline.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/sampling/operations.hpp"

namespace kvo::sampling {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(SamplingLabel, std::uint8_t, kNoLogits, kOneLogit, kTwelveLogits,
                              kThirteenLogits, kThousandLogits, kEqualLogits, kNan, kNanFirst,
                              kInfinite, kAllCut, kMinusZero, kTopKOfEqualLogits, kTopKOfOne,
                              kTopKBeyond, kTopPOfZero, kTopPOfOne, kTopPOfEqualLogits,
                              kTopPOfManyTokens, kTemperatureZero, kTemperatureBelowZero,
                              kPenaltyBelowZero, kPenaltyCompounds, kIdsOutside, kRankRefused,
                              kIntegersRefused, kNoPosition, kEmptyVocabulary,
                              kTokenOfAnEmptyVocabulary, kSeveralPositions, kSeveralRows,
                              kHalfPrecision, kGreedy, kGreedyWithPenalty, kNanWins, kAllSteps,
                              kSelectedOfThousand, kHugeTemperature, kQuotientsRunTogether,
                              kBeyondFourThousandLogits, kLogitsBeyondTwoBytes,
                              kSelectedBeyondTwoBytes, kTopKBeyondOneByte, kBeyondAHundredGenerated)

constexpr double kNanValue = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSmallestPenalty = 1 + std::numeric_limits<double>::epsilon();

class SamplingScript final : public ScriptGenerator<SamplingScript, Ops, SamplingLabel> {
  using S = SamplingScript;
  using Label = SamplingLabel;

 public:
  explicit SamplingScript(const CaseTerms& terms)
      : ScriptGenerator(terms),
        odd_percent_(draw().percent(40) ? draw().between(1, 40) : 0),
        levels_(draw().percent(35) ? draw().between(1, 4) : 400) {
    if (is_large() && levels_ > 4 && draw().percent(50)) levels_ = 1 << 20;
  }

  // Steps.
  Op temperature() { return Op::of(ApplyTemperature{logits(), some_temperature()}); }
  Op top_k() {
    std::vector<double> drawn = logits();
    const std::int64_t k = some_k(std::ssize(drawn));
    return Op::of(ApplyTopK{std::move(drawn), k});
  }
  Op top_p() { return Op::of(ApplyTopP{logits(), some_p()}); }
  Op penalty() {
    std::vector<double> drawn = logits();
    std::vector<std::int64_t> ids = generated(std::ssize(drawn));
    return Op::of(ApplyRepetitionPenalty{std::move(drawn), std::move(ids), some_penalty()});
  }
  Op softmax() { return Op::of(Softmax{logits()}); }
  Op argmax() { return Op::of(Argmax{logits()}); }
  Op distribution() { return Op::of(SampleFromDistribution{logits(), seed()}); }
  Op sample() {
    const std::int64_t vocabulary = some_size();
    Sample op{tensor(vocabulary), {}, generated(vocabulary), seed()};
    SamplingConfig& config = op.sampling;
    if (draw().percent(75)) config.temperature = some_temperature();
    if (draw().percent(60)) config.top_k = some_k(vocabulary);
    if (draw().percent(60)) config.top_p = some_p();
    if (draw().percent(50)) config.repetition_penalty = some_penalty();
    return Op::of(std::move(op));
  }
  // A few values, and a penalty that moves them by the smallest step there is: divided by some
  // temperatures they are equal again.
  Op close_sample() {
    const std::int64_t vocabulary = draw().between(3, 12);
    Sample op{make_tensor({1, 1, vocabulary}), {}, generated(vocabulary), seed()};
    for (float& cell : op.logits.floats()) cell = 1 + static_cast<float>(draw().between(4, 6)) / 16;
    op.sampling.temperature = draw().one_of({1.1, 1.2, 1.3});
    op.sampling.top_k = draw().between(1, vocabulary - 1);
    op.sampling.repetition_penalty = kSmallestPenalty;
    return Op::of(std::move(op));
  }
  Op defaults() { return Op::of(DefaultSamplingConfig{}); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {12, "apply_temperature", &S::temperature},
      {20, "apply_top_k", &S::top_k},
      {20, "apply_top_p", &S::top_p},
      {16, "apply_repetition_penalty", &S::penalty},
      {16, "softmax", &S::softmax},
      {12, "argmax", &S::argmax},
      {16, "sample_from_distribution", &S::distribution},
      {80, "sample", &S::sample, true},
      {8, "sample", &S::close_sample},
      {1, "default_sampling_config", &S::defaults},
  });

  // What became of an operation.
  void observe(const ApplyTemperature& op, const Observation& /*seen*/) {
    look_at(op.logits);
    look_at_temperature(op.temperature);
  }
  void observe(const ApplyTopK& op, const Observation& seen) {
    look_at(op.logits);
    look_at_k(op.k, std::ssize(op.logits));
    if (!seen.error && kept(seen) > op.k && op.k > 0 && op.k < std::ssize(op.logits))
      reach(Label::kTopKOfEqualLogits);
  }
  void observe(const ApplyTopP& op, const Observation& seen) {
    constexpr std::int64_t kMany = 64;
    look_at(op.logits);
    look_at_p(op.p);
    if (op.p <= 0 || op.p >= 1 || seen.error) return;
    const std::int64_t left = kept(seen);
    if (left > kMany && left < std::ssize(op.logits)) reach(Label::kTopPOfManyTokens);
    if (left > 0 && left < std::ssize(op.logits) && std::ssize(op.logits) > 12 &&
        std::ranges::count(op.logits, op.logits.front()) == std::ssize(op.logits))
      reach(Label::kTopPOfEqualLogits);
  }
  void observe(const ApplyRepetitionPenalty& op, const Observation& /*seen*/) {
    look_at(op.logits);
    look_at_ids(op.generated, std::ssize(op.logits));
    if (op.penalty < 0) reach(Label::kPenaltyBelowZero);
  }
  template <OneOf<Softmax, Argmax, SampleFromDistribution> T>
  void observe(const T& op, const Observation& /*seen*/) {
    look_at(op.logits);
  }
  void observe(const Sample& op, const Observation& seen) {
    const Shape& shape = op.logits.shape;
    spend(kCost * static_cast<std::uint64_t>(op.logits.elements()));
    if (shape.size() != 3) return reach(Label::kRankRefused);
    if (op.logits.dtype == DType::kI32) return reach(Label::kIntegersRefused);
    if (shape[0] == 0 || shape[1] == 0) return reach(Label::kNoPosition);
    if (shape[2] == 0)
      return reach(seen.error ? Label::kEmptyVocabulary : Label::kTokenOfAnEmptyVocabulary);
    if (shape[0] > 1) reach(Label::kSeveralRows);
    if (shape[1] > 1) reach(Label::kSeveralPositions);
    look_at_temperature(op.sampling.temperature);
    if (op.logits.dtype != DType::kF32) return reach(Label::kHalfPrecision);
    if (!seen.error) look_at_choice(op, seen.as<Token>().token);
  }

 private:
  [[nodiscard]] static std::int64_t kept(const Observation& seen) {
    const std::vector<double>& left = seen.as<Logits>().logits;
    return std::ssize(left) - std::ranges::count(left, -kInfinity);
  }

  static constexpr std::uint64_t kCost = 20;  // of a logit, beside its place in a sorted list

  std::int64_t some_size() {
    if (is_large() && draw().percent(15)) {
      const std::int64_t most = 1 << 17;
      return draw().percent(20) ? draw().between(1 << 16, most) : draw().edge(512, most);
    }
    if (draw().percent(4)) return draw().one_of<std::int64_t>({1000, 1000, 700});
    if (draw().percent(30)) return draw().one_of<std::int64_t>({0, 1, 2, 12, 13});
    return draw().size(1, draw().percent(10) ? 600 : 40);
  }
  // Quarters, a few different ones in some cases; in others now and then a number that is none.
  double value() {
    if (odd_percent_ > 0 && draw().percent(static_cast<std::uint64_t>(odd_percent_)))
      return draw().one_of({kNanValue, kInfinity, -kInfinity, -kInfinity, -0.0, 0.0, 1e30, -1e-40});
    return static_cast<double>(draw().between(-levels_ / 2, levels_ / 2)) / 16;
  }
  std::vector<double> logits() {
    std::vector<double> drawn(static_cast<std::size_t>(some_size()));
    const bool one_value = draw().percent(6);
    const bool cut = draw().percent(3);
    const double first = value();
    for (double& each : drawn) each = cut ? -kInfinity : one_value ? first : value();
    return drawn;
  }
  Tensor tensor(std::int64_t vocabulary) {
    Shape shape{draw().percent(10) ? 2 : 1, draw().percent(25) ? draw().between(2, 3) : 1,
                vocabulary};
    if (draw().percent(2)) shape[draw().below(2)] = 0;
    if (draw().percent(2)) shape.erase(shape.begin());
    if (draw().percent(2))
      return make_tensor(shape, draw().one_of({DType::kI32, DType::kF16, DType::kBF16}));
    Tensor made = make_tensor(shape);
    const bool cut = draw().percent(3);
    for (float& cell : made.floats()) cell = static_cast<float>(cut ? -kInfinity : value());
    if (!draw().percent(6)) return made;
    Tensor half = make_tensor(shape, draw().one_of({DType::kF16, DType::kBF16}));
    for (std::size_t i = 0; i < made.floats().size(); ++i)
      store_element(half.dtype, made.floats()[i], half.bytes.data() + i * dtype_bytes(half.dtype));
    return half;
  }
  double some_temperature() {
    return draw().one_of({0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 0.0, 0.0, -1.0, 1e-300, 1e290, 0.1});
  }
  std::int64_t some_k(std::int64_t size) {
    if (draw().percent(15)) return draw().between(-1, 0);
    if (draw().percent(15)) return draw().between(size, size + 1);
    return draw().percent(60) ? draw().between(1, 5) : draw().between(1, size);
  }
  double some_p() {
    if (draw().percent(20)) return draw().one_of({0.0, 1.0, -0.5, 2.0, 1e-9});
    return static_cast<double>(draw().between(1, 999)) / 1000;
  }
  double some_penalty() {
    return draw().one_of({1.1, 1.25, 1.5, 2.0, 3.0, 0.5, 1.0, 0.0, -2.0, kSmallestPenalty});
  }
  std::vector<std::int64_t> generated(std::int64_t size) {
    const bool many = is_large() && draw().percent(15);
    std::vector<std::int64_t> ids(
        static_cast<std::size_t>(many ? draw().edge(12, 1'025) : draw().size(0, 12)));
    for (std::int64_t& id : ids)
      id = draw().percent(15) ? draw().one_of<std::int64_t>({-1, size, size + 100, 1LL << 40})
                              : draw().between(0, draw().percent(50) ? 3 : size - 1);
    return ids;
  }
  std::optional<std::int64_t> seed() {
    if (draw().percent(10)) return std::nullopt;
    return draw().between(-1, 1'000'000);
  }

  void look_at(const std::vector<double>& seen) {
    constexpr std::size_t kFourThousand = 4'096;
    constexpr std::size_t kTwoBytes = 0xFFFF;
    const auto has = [&](auto is) { return std::ranges::any_of(seen, is); };
    spend(kCost * seen.size());
    if (seen.size() > kFourThousand) reach(Label::kBeyondFourThousandLogits);
    if (seen.size() > kTwoBytes) reach(Label::kLogitsBeyondTwoBytes);
    if (seen.empty()) return reach(Label::kNoLogits);
    if (seen.size() == 1) reach(Label::kOneLogit);
    if (seen.size() == 12) reach(Label::kTwelveLogits);
    if (seen.size() == 13) reach(Label::kThirteenLogits);
    if (seen.size() == 1000) reach(Label::kThousandLogits);
    if (has([](double v) { return std::isnan(v); })) reach(Label::kNan);
    if (std::isnan(seen.front())) reach(Label::kNanFirst);
    if (has([](double v) { return v == kInfinity; })) reach(Label::kInfinite);
    if (has([](double v) { return v == 0 && std::signbit(v); })) reach(Label::kMinusZero);
    if (std::ranges::count(seen, -kInfinity) == std::ssize(seen)) reach(Label::kAllCut);
    std::vector<double> falling = seen;
    std::ranges::sort(falling, is_above);
    if (std::ranges::adjacent_find(falling) != falling.end()) reach(Label::kEqualLogits);
  }
  void look_at_temperature(double temperature) {
    if (temperature == 0) reach(Label::kTemperatureZero);
    if (temperature < 0) reach(Label::kTemperatureBelowZero);
  }
  void look_at_k(std::int64_t k, std::int64_t size) {
    if (k == 1 && size > 1) reach(Label::kTopKOfOne);
    if (k > size) reach(Label::kTopKBeyond);
    constexpr std::int64_t kOneByte = 0xFF;
    if (k > kOneByte && k < size) reach(Label::kTopKBeyondOneByte);
  }
  void look_at_p(double p) {
    if (p == 0) reach(Label::kTopPOfZero);
    if (p == 1) reach(Label::kTopPOfOne);
  }
  void look_at_ids(const std::vector<std::int64_t>& ids, std::int64_t size) {
    if (ids.size() > 100) reach(Label::kBeyondAHundredGenerated);
    std::set<std::int64_t> inside;
    for (const std::int64_t id : ids) {
      if (id < 0 || id >= size)
        reach(Label::kIdsOutside);
      else if (!inside.insert(id).second)
        reach(Label::kPenaltyCompounds);
    }
  }
  void look_at_choice(const Sample& op, std::int64_t token) {
    const SamplingConfig& config = op.sampling;
    const std::int64_t vocabulary = op.logits.shape[2];
    const std::span<const float> row =
        op.logits.floats().subspan(static_cast<std::size_t>((op.logits.shape[1] - 1) * vocabulary),
                                   static_cast<std::size_t>(vocabulary));
    const bool selects = config.top_k > 0 && config.top_k < vocabulary;
    if (config.temperature <= 0) {
      reach(penalty_is_on(config) ? Label::kGreedyWithPenalty : Label::kGreedy);
      const bool has_number = std::ranges::any_of(row, [](float v) { return v > -kInfinity; });
      if (!penalty_is_on(config) && token == 0 && has_number && std::isnan(row[0]))
        reach(Label::kNanWins);
      return;
    }
    constexpr std::int64_t kTwoBytes = 0xFFFF;
    if (selects && token > kTwoBytes) reach(Label::kSelectedBeyondTwoBytes);
    if (selects && vocabulary >= 700) reach(Label::kSelectedOfThousand);
    if (selects && config.top_p > 0 && config.top_p < 1 && penalty_is_on(config))
      reach(Label::kAllSteps);
    if (selects && config.temperature > 1e200) reach(Label::kHugeTemperature);
    if (!selects || !penalty_is_on(config)) return;
    for (const std::int64_t id : op.generated) {
      if (id < 0 || id >= vocabulary) continue;
      const double before = row[static_cast<std::size_t>(id)];
      const double after = penalized(before, config.repetition_penalty);
      if (after != before && after / config.temperature == before / config.temperature)
        reach(Label::kQuotientsRunTogether);
    }
  }

  std::int64_t odd_percent_;  // how many values are no plain numbers
  std::int64_t levels_;       // how many different plain numbers there are
};

}  // namespace

std::vector<Generator> generators() {
  return {script_generator<SamplingLabel>(
      pipeline_kind(), script_case<SamplingScript>,
      {SamplingLabel::kTokenOfAnEmptyVocabulary, SamplingLabel::kNanWins}, {})};
}

}  // namespace kvo::sampling
