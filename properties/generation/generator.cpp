// Random scripts for the three kinds of generators: requests with every kind of bad input.
#include <algorithm>
#include <memory>
#include <utility>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "properties/generation/draws.hpp"
#include "reference/generation/operations.hpp"

namespace kvo::generation {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(TextLabel, std::uint8_t, kText, kNoText, kFull, kExhausted,
                              kCancelled, kStreamFailed, kEmptyPrompt, kBadPrompt, kUndecodable,
                              kModelFailed, kBadLogits, kTooFewLayers, kSeveralEvents, kDrawn,
                              kMixedBatch, kWrongStreams, kPoolLow, kPoolWhole, kNoPool, kRefused,
                              kVocabularyOfOne, kMany, kChunkedPrompt, kSharedPrefix,
                              kBeyondAHundredPositions, kTextOfAHundredBytes, kFiveLayers,
                              kFiveHeads, kBeyondAHundredTokens, kCancelledThenRepeated)

class TextScript final : public ScriptGenerator<TextScript, GeneratorOps, TextLabel> {
  using S = TextScript;
  using Label = TextLabel;

 public:
  TextScript(const CaseTerms& terms, RequestTerms requests, const ModelConfig& model,
             PrefillOption prefill)
      : ScriptGenerator(terms), terms_(std::move(requests)), model_(model), prefill_(prefill) {
    plan(New{});
  }

  // Steps.
  Op generate() {
    Request request = this->request();
    return Op::of(Generate{std::move(request.prompt), std::move(request.sampling), cancel()});
  }
  Op generate_stream() {
    Request request = this->request();
    GenerateStream op{std::move(request.prompt), std::move(request.sampling), cancel()};
    if (draw().percent(10)) op.cancel_at_event = draw().between(0, 5);
    if (draw().percent(12)) op.fail_at_event = draw().between(0, 5);
    return Op::of(std::move(op));
  }
  Op batch() { return Op::of(BatchGenerate{requests()}); }
  Op batch_stream() {
    BatchGenerateStream op{requests()};
    op.streams = std::ssize(op.requests);
    if (draw().percent(20)) op.streams += draw().one_of<std::int64_t>({-1, 1, 2});
    op.streams = std::max<std::int64_t>(op.streams, 0);
    return Op::of(std::move(op));
  }
  Op available() { return Op::of(PoolAvailable{}); }
  Op drain() { return Op::of(PoolDrain{draw().between(0, 5)}); }
  Op again() { return Op::of(New{}); }

  // A text that is given up half way, and the same request again.
  std::optional<Op> repeat_cancelled(std::size_t number) {
    if (number == 0) again_ = request();
    spend(cost_of(again_, model_));
    Generate op{again_.prompt, again_.sampling};
    if (number == 0) op.cancel_after_forward = draw().between(0, 3);
    return Op::of(std::move(op));
  }

  static constexpr auto kPlans = std::to_array<ScriptPlan<S, Label>>({
      {1, Label::kCancelledThenRepeated, 2, &S::repeat_cancelled},
  });
  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {12, "generate", &S::generate, true},
      {8, "stream", &S::generate_stream},
      {3, "batch", &S::batch},
      {3, "batch stream", &S::batch_stream},
      {3, "available", &S::available},
      {3, "drain", &S::drain},
      {1, "new", &S::again},
  });

  // What became of an operation.
  void saw(const New& /*op*/, const Observation& seen) {
    if (seen.error) reach(Label::kRefused);
    if (terms_.vocab == 1) reach(Label::kVocabularyOfOne);
  }
  void saw(const Generate& op, const Observation& seen) {
    told(seen.error);
    if (seen.error) return;
    const std::string& text = *seen.as<Generate::Returns>().text;
    reach(text.empty() ? Label::kNoText : Label::kText);
    if (op.sampling.temperature > 0) reach(Label::kDrawn);
    constexpr std::size_t kManyBytes = 16;
    constexpr std::size_t kHundred = 100;
    if (text.size() > kManyBytes) reach(Label::kMany);
    if (text.size() > kHundred) reach(Label::kTextOfAHundredBytes);
    if (static_cast<std::size_t>(std::ranges::count(op.prompt, ' ')) >= kHundred)
      reach(Label::kBeyondAHundredPositions);
    if (model_.layers >= 5) reach(Label::kFiveLayers);
    if (model_.kind == ModelKind::kAttention && model_.heads.value_or(1) >= 5)
      reach(Label::kFiveHeads);
    if (model_.vocab > static_cast<std::int64_t>(kHundred)) reach(Label::kBeyondAHundredTokens);
    if (op.cancel_after_forward) reach(Label::kCancelled);
    if (prefill_.chunk == 1 && op.prompt.find(' ') != std::string::npos)
      reach(Label::kChunkedPrompt);
    if (prefill_.keep_prefix && shares_) reach(Label::kSharedPrefix);
  }
  void saw(const GenerateStream& op, const Observation& seen) {
    told(seen.error);
    if (op.cancel_after_forward || op.cancel_at_event) reach(Label::kCancelled);
    if (seen.returns && seen.as<GenerateStream::Returns>().events.size() > 2)
      reach(Label::kSeveralEvents);
  }
  void saw(const BatchGenerate& /*op*/, const Observation& seen) { batched(seen); }
  void saw(const BatchGenerateStream& op, const Observation& seen) {
    batched(seen);
    if (op.streams != std::ssize(op.requests)) reach(Label::kWrongStreams);
  }
  void saw(const PoolAvailable& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const auto& pool = seen.as<PoolAvailable::Returns>();
    if (!pool.n.has_value()) return reach(Label::kNoPool);
    constexpr std::int64_t kLow = 3;
    if (*pool.n < kLow) reach(Label::kPoolLow);
    if (*pool.n == *pool.cap) reach(Label::kPoolWhole);
  }
  void saw(const PoolDrain& /*op*/, const Observation& /*seen*/) {}

 private:
  /// Where prefixes are kept, prompts often begin as the one before.
  Request request() {
    Request drawn = drawn_request(draw(), terms_);
    shares_ = prefill_.keep_prefix && draw().percent(60) && last_.find(' ') != std::string::npos;
    if (shares_) {
      const std::size_t blank = last_.find(' ', draw().below(last_.rfind(' ') + 1));
      drawn.prompt = last_.substr(0, blank) + " " + drawn.prompt;
    }
    last_ = drawn.prompt;
    spend(cost_of(drawn, model_));
    return drawn;
  }
  std::optional<std::int64_t> cancel() {
    if (draw().percent(88)) return std::nullopt;
    return draw().between(0, 6);
  }
  std::vector<Request> requests() {
    std::vector<Request> all;
    for (std::int64_t count = draw().between(0, 3); count > 0; --count) all.push_back(request());
    return all;
  }
  void told(const std::optional<Error>& error) {
    if (!error) return;
    if (error->code == Code::kFull) reach(Label::kFull);
    if (error->code == Code::kExhausted) reach(Label::kExhausted);
    if (error->code == Code::kBadShape) reach(Label::kBadLogits);
    if (error->code == Code::kOutOfRange) reach(Label::kTooFewLayers);
    if (error->reason == "canceled") reach(Label::kCancelled);
    if (error->reason == "stream") reach(Label::kStreamFailed);
    if (error->reason == "prompt_empty") reach(Label::kEmptyPrompt);
    if (error->reason == "encode") reach(Label::kBadPrompt);
    if (error->reason == "decode") reach(Label::kUndecodable);
    if (error->reason == "model") reach(Label::kModelFailed);
  }
  void batched(const Observation& seen) {
    if (!seen.returns || seen.error) return;
    const auto& results = seen.as<BatchReturns>().results;
    const auto failed = std::ranges::count_if(
        results, [](const BatchResult& result) { return result.error.has_value(); });
    if (failed > 0 && failed < std::ssize(results)) reach(Label::kMixedBatch);
  }

  RequestTerms terms_;
  ModelConfig model_;
  PrefillOption prefill_;
  Request again_ = {};     ///< of a plan
  std::string last_ = {};  ///< prompt
  bool shares_ = false;    ///< the last prompt begins as the one before it
};

GeneratedCase make_text_case(const CacheKind& kind, const CaseTerms& terms) {
  Draw draw(~terms.seed);
  const bool bytes = draw.percent(12);
  GeneratorConfig config;
  config.model = drawn_model(draw, bytes, terms.scale);
  config.tokenizer = drawn_tokenizer(draw, config.model.vocab, bytes);
  config.generator = drawn_sizes(draw, config.model, terms.scale);
  const bool paged = &kind == &paged_kind();
  if (&kind == &tensor_kind()) config.engine = Engine::kUploader;
  if (draw.percent(5)) config.kv_dtype = "fp16";
  if (paged && !draw.percent(6)) {
    config.paged = {config.model.dim, 1};
    if (draw.percent(5)) config.paged.head_dim += 1;
    if (draw.percent(5)) config.paged.head_dim = std::int64_t{1} << 20U;
  }
  if (draw.percent(35))
    config.prefill = {.chunk = draw.one_of<std::int64_t>({0, 0, 1, 2, 5}),
                      .keep_prefix = draw.percent(70)};
  const PrefillOption prefill = config.prefill.value_or(PrefillOption());
  RequestTerms request{.tokenizer = config.tokenizer,
                       .vocab = config.model.vocab,
                       .bounded = !paged,
                       .large = terms.scale == Scale::kLarge};
  const ModelConfig model = config.model;
  return {.setup = {.profile = terms.profile, .config = Record::of(std::move(config))},
          .ops = std::make_unique<TextScript>(terms, std::move(request), model, prefill)};
}

using Others = std::initializer_list<TextLabel>;

kvo::Generator text_generator(const CacheKind& kind, Others not_original, Others not_documented) {
  return {.kind = &kind,
          .make = [&kind](const CaseTerms& terms) { return make_text_case(kind, terms); },
          .original_labels = label_texts_but(not_original),
          .documented_labels = label_texts_but(not_documented)};
}

}  // namespace

std::vector<kvo::Generator> generators() {
  using L = TextLabel;
  return {
      text_generator(contiguous_kind(), {L::kExhausted, L::kPoolLow, L::kPoolWhole, L::kRefused},
                     {L::kExhausted, L::kPoolLow, L::kPoolWhole}),
      text_generator(paged_kind(), {L::kFull, L::kRefused}, {L::kFull}),
      text_generator(tensor_kind(), {L::kExhausted, L::kPoolLow, L::kPoolWhole, L::kRefused},
                     {L::kExhausted, L::kPoolLow, L::kPoolWhole, L::kRefused}),
      speculative_generator(),
      adaptive_generator(),
  };
}

}  // namespace kvo::generation
