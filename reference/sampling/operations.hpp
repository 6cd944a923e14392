// reference/sampling/operations.hpp: the operations of contract `sampling`, described.
//
// Each stands for itself: what it answers is a function of its arguments.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/sampling/sampler.hpp"

namespace kvo::sampling {

struct Logits {
  std::vector<double> logits;
};
KVO_DESCRIBE(Logits, (logits, "logits behind the step"))

struct Token {
  std::int64_t token = 0;
};
KVO_DESCRIBE(Token, (token, "index into the vocabulary"))

struct ApplyTemperature {
  static constexpr std::string_view kName = "apply_temperature";
  static constexpr std::string_view kDoc = "Divides logits by a temperature above 0 (ZF-94).";
  using Returns = Logits;
  std::vector<double> logits;
  double temperature = 0;
};
KVO_DESCRIBE(ApplyTemperature, (logits, "logits"), (temperature, "what they are divided by"))

struct ApplyTopK {
  static constexpr std::string_view kName = "apply_top_k";
  static constexpr std::string_view kDoc = "Cuts what is below the k-th largest logit (ZF-95).";
  using Returns = Logits;
  std::vector<double> logits;
  std::int64_t k = 0;
};
KVO_DESCRIBE(ApplyTopK, (logits, "logits"), (k, "how many stay; more where values are equal"))

struct ApplyTopP {
  static constexpr std::string_view kName = "apply_top_p";
  static constexpr std::string_view kDoc =
      "Cuts what the most probable tokens do not need to reach p (ZF-96).";
  using Returns = Logits;
  std::vector<double> logits;
  double p = 0;
};
KVO_DESCRIBE(ApplyTopP, (logits, "logits"), (p, "probability to reach"))

struct ApplyRepetitionPenalty {
  static constexpr std::string_view kName = "apply_repetition_penalty";
  static constexpr std::string_view kDoc =
      "Divides logits above 0 of generated tokens by a penalty, multiplies the others (ZF-93).";
  using Returns = Logits;
  std::vector<double> logits;
  std::vector<std::int64_t> generated;
  double penalty = 1;
};
KVO_DESCRIBE(ApplyRepetitionPenalty, (logits, "logits"),
             (generated, "ids; each counts as often as it occurs"), (penalty, "of any sign"))

struct Softmax {
  static constexpr std::string_view kName = "softmax";
  static constexpr std::string_view kDoc = "The probabilities of logits (ZF-97).";
  struct Returns {
    /// What exponentials of two libraries may differ by, and a sum of them.
    static constexpr double kRecordedTolerance = 1e-12;
    std::vector<double> probs;
  };
  std::vector<double> logits;
};
KVO_DESCRIBE(Softmax, (logits, "logits"))
KVO_DESCRIBE(Softmax::Returns, (probs, "one probability a logit"))

struct Argmax {
  static constexpr std::string_view kName = "argmax";
  static constexpr std::string_view kDoc = "The first index of the largest logit (ZF-92).";
  using Returns = Token;
  std::vector<double> logits;
};
KVO_DESCRIBE(Argmax, (logits, "logits"))

struct SampleFromDistribution {
  static constexpr std::string_view kName = "sample_from_distribution";
  static constexpr std::string_view kDoc = "Draws an index with its probability (ZF-98).";
  using Returns = Token;
  std::vector<double> logits;
  std::optional<std::int64_t> seed = std::nullopt;
};
KVO_DESCRIBE(SampleFromDistribution, (logits, "logits"),
             (seed, "of the random numbers of this operation; 0 if missing"))

struct Sample {  // NOLINT(bugprone-exception-escape): as Tensor
  static constexpr std::string_view kName = "sample";
  static constexpr std::string_view kDoc =
      "Chooses the next token from the last position of batch row 0 (ZF-90 to ZF-92).";
  static constexpr std::array<std::string_view, 3> kAxes{"batch", "position", "token"};
  using Returns = Token;
  Tensor logits;
  SamplingConfig sampling;
  std::vector<std::int64_t> generated;
  std::optional<std::int64_t> seed = std::nullopt;
};
KVO_DESCRIBE(Sample, (logits, "what a model answered"), (sampling, "how to choose"),
             (generated, "ids generated so far"),
             (seed, "of the random numbers of this operation; 0 if missing"))

struct DefaultSamplingConfig {
  static constexpr std::string_view kName = "default_sampling_config";
  static constexpr std::string_view kDoc = "How tokens are chosen where nobody says (ZF-99).";
  using Returns = SamplingConfig;
};
KVO_DESCRIBE(DefaultSamplingConfig)

#define KVO_SAMPLING_OPERATIONS                                              \
  sampling::ApplyTemperature, sampling::ApplyTopK, sampling::ApplyTopP,      \
      sampling::ApplyRepetitionPenalty, sampling::Softmax, sampling::Argmax, \
      sampling::SampleFromDistribution, sampling::Sample, sampling::DefaultSamplingConfig
using Ops = boost::mp11::mp_list<KVO_SAMPLING_OPERATIONS>;

/// The kind `sampling.pipeline`.
[[nodiscard]] const CacheKind& pipeline_kind();

/// A subject whose samplers come from `make`.
[[nodiscard]] Subject make_subject(std::string variant, std::string doc, MakeSampler make);

}  // namespace kvo::sampling

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_SAMPLING_OPERATIONS)
}  // namespace kvo
