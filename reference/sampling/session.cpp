// How operations of the contract reach a sampler: one overload an operation.
#include <memory>
#include <utility>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/sampling/operations.hpp"

namespace kvo::sampling {
namespace {

// An operation has random numbers of its own, so that it may be left out of a script, or stand
// anywhere in it.
Random random_of(const std::optional<std::int64_t>& seed) {
  return Random(static_cast<std::uint64_t>(seed.value_or(0)));
}

Result<Token> token_of(const Result<std::int64_t>& token) {
  if (!token) return token.error();
  return Token{*token};
}

class PipelineSession final : public DispatchSession<PipelineSession, Ops> {
 public:
  explicit PipelineSession(std::unique_ptr<Sampler> sampler) : sampler_(std::move(sampler)) {}

  template <class T>
  [[nodiscard]] Result<Sampler*> cache_of(const T& /*op*/) const {
    return sampler_.get();
  }
  Result<Logits> operator()(const ApplyTemperature& op) {
    Logits changed{op.logits};
    probe()([&] { sampler_->apply_temperature(changed.logits, op.temperature); });
    return changed;
  }
  Result<Logits> operator()(const ApplyTopK& op) {
    Logits changed{op.logits};
    probe()([&] { sampler_->apply_top_k(changed.logits, op.k); });
    return changed;
  }
  Result<Logits> operator()(const ApplyTopP& op) {
    Logits changed{op.logits};
    probe()([&] { sampler_->apply_top_p(changed.logits, op.p); });
    return changed;
  }
  Result<Logits> operator()(const ApplyRepetitionPenalty& op) {
    Logits changed{op.logits};
    probe()([&] { sampler_->apply_repetition_penalty(changed.logits, op.generated, op.penalty); });
    return changed;
  }
  Result<Token> operator()(const SampleFromDistribution& op) {
    Random random = random_of(op.seed);
    return token_of(probe()([&] { return sampler_->sample_from_distribution(op.logits, random); }));
  }
  Result<Token> operator()(const Sample& op) {
    Random random = random_of(op.seed);
    return token_of(probe()(
        [&] { return sampler_->sample(view_of(op.logits), op.sampling, op.generated, random); }));
  }
  Result<SamplingConfig> operator()(const DefaultSamplingConfig& /*op*/) {
    return SamplingConfig();
  }

 private:
  std::unique_ptr<Sampler> sampler_;
};

}  // namespace

const CacheKind& pipeline_kind() {
  static const CacheKind kKind{.contract = "sampling",
                               .cache = "pipeline",
                               .doc = "from logits to the next token (zerfoo sampling)",
                               .operations = op_kinds(Ops()),
                               .quirks = kQuirkRows};
  return kKind;
}

Subject make_subject(std::string variant, std::string doc, MakeSampler make) {
  return subject_of<Quirk>(
      pipeline_kind(), std::move(variant), std::move(doc),
      [make = std::move(make)](const Setup& /*setup*/, QuirkSet<Quirk> quirks) {
        return std::make_unique<PipelineSession>(make(quirks));
      },
      kQuirkRows);
}

}  // namespace kvo::sampling

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_SAMPLING_OPERATIONS)
}  // namespace kvo
