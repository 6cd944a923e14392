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

struct LogitList {
  using Value = std::vector<double>;
  static constexpr Domain kDomain{.meaning = "logits"};
};
struct Seed {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.meaning =
                                      "of the random numbers of this operation; 0 if missing"};
};

KVO_RECORD(Logits, (std::vector<double>, logits, "logits after the step"))
KVO_RECORD(Token, (std::int64_t, token, "index into the vocabulary"))
KVO_OPERATION(ApplyTemperature, apply_temperature,
              "Divides logits by a temperature above 0 (ZF-94).", Logits, (LogitList, logits),
              (double, temperature, "what they are divided by"))
KVO_OPERATION(ApplyTopK, apply_top_k, "Cuts what is below the k-th largest logit (ZF-95).", Logits,
              (LogitList, logits), (std::int64_t, k, "how many stay; more where values are equal"))
KVO_OPERATION(ApplyTopP, apply_top_p,
              "Cuts what the most probable tokens do not need to reach p (ZF-96).", Logits,
              (LogitList, logits), (double, p, "probability to reach"))
KVO_OPERATION(
    ApplyRepetitionPenalty, apply_repetition_penalty,
    "Divides logits above 0 of generated tokens by a penalty, multiplies the others (ZF-93).",
    Logits, (LogitList, logits),
    (std::vector<std::int64_t>, generated, "ids; each counts as often as it occurs"),
    (double, penalty, "of any sign", 1))
KVO_RECORD_WITH((  /// What exponentials of two libraries may differ by, and a sum of them.
                    static constexpr double kRecordedTolerance = 1e-12;),
                SoftmaxReturns, (std::vector<double>, probs, "one probability a logit"))
KVO_OPERATION(Softmax, softmax, "The probabilities of logits (ZF-97).", SoftmaxReturns,
              (LogitList, logits))
KVO_OPERATION(Argmax, argmax, "The first index of the largest logit (ZF-92).", Token,
              (LogitList, logits))
KVO_OPERATION(SampleFromDistribution, sample_from_distribution,
              "Draws an index with its probability (ZF-98).", Token, (LogitList, logits),
              (Maybe<Seed>, seed))
KVO_OPERATION_WITH(
    (static constexpr std::array<std::string_view, 3> kAxes{"batch", "position", "token"};), Sample,
    sample, "Chooses the next token from the last position of batch row 0 (ZF-90 to ZF-92).", Token,
    (Tensor, logits, "what a model answered"), (SamplingConfig, sampling, "how to choose"),
    (std::vector<std::int64_t>, generated, "ids generated so far"), (Maybe<Seed>, seed))
KVO_OPERATION(DefaultSamplingConfig, default_sampling_config,
              "How tokens are chosen by default (ZF-99).", SamplingConfig)

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
