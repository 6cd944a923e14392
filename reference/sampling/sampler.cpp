#include "reference/sampling/sampler.hpp"

namespace kvo::sampling {

Status check_logits(const StridedView& logits, const SamplingConfig& config,
                    QuirkSet<Quirk> quirks) {
  const auto empty = [&](Quirk aborts, const char* what) {
    return fail(quirks.has(aborts) ? Code::kPrecondition : Code::kBadShape, what);
  };
  if (logits.shape.size() != 3) return fail(Code::kBadShape, "rank");
  if (logits.dtype == DType::kI32) return fail(Code::kNotSupported, "dtype");
  if (logits.shape[0] <= 0) return empty(Quirk::kNoPositionAborts, "batch");
  if (logits.shape[1] <= 0) return empty(Quirk::kNoPositionAborts, "seq");
  if (logits.shape[2] > 0) return {};
  if (config.temperature <= 0 && penalty_is_on(config) &&
      quirks.has(Quirk::kEmptyVocabularyIsTokenZero))
    return {};
  return empty(Quirk::kEmptyVocabularyAborts, "vocab");
}

double uniform(Random& random) {
  constexpr std::uint64_t kSteps = std::uint64_t{1} << 53;
  return static_cast<double>(random.below(kSteps)) / static_cast<double>(kSteps);
}

}  // namespace kvo::sampling
