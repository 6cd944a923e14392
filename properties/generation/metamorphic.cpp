// The metamorphic laws of contract `generation`.
#include "properties/campaign/metamorphic.hpp"

#include <array>
#include <string>
#include <utility>

#include "properties/campaign/laws.hpp"
#include "properties/contract_parts.hpp"
#include "reference/generation/operations.hpp"

namespace kvo::generation {
namespace {

bool has_generators(const CacheKind& kind) {
  return &kind == &contiguous_kind() || &kind == &paged_kind() || &kind == &tensor_kind();
}

bool is_documented(const Drawn& drawn) {
  return drawn.setup.profile == Profile::kDocumented;
}

/// How a request ended, whichever operation it came from: the last one of a batch.
Observation as_result(const Observation& seen) {
  BatchResult result;
  if (seen.error) {
    result.error = seen.error->code_text();
  } else if (const auto* text = seen.returns.get_if<Generate::Returns>()) {
    result.text = text->text;
  } else if (const auto* streamed = seen.returns.get_if<GenerateStream::Returns>()) {
    result.text.emplace();
    for (const Event& event : streamed->events) *result.text += event.token;
  } else if (const auto* batch = seen.returns.get_if<BatchReturns>();
             batch != nullptr && !batch->results.empty()) {
    result = batch->results.back();
    result.stage.reset();
  }
  return {.returns = Record::of(std::move(result))};
}

// ---- streamed_is_returned ----

/// Whether the original streams what it returns: nothing is cut, taken back, or half a character.
bool streams_all(const Drawn& drawn, std::size_t at, const Generate& op) {
  const TokenizerKind kind = drawn.setup.config_as<GeneratorConfig>().tokenizer.kind;
  return drawn.succeeded(at) && op.sampling.stop_strings.empty() &&
         (kind == TokenizerKind::kIds || kind == TokenizerKind::kWhitespace);
}

Variation streamed(const Drawn& drawn) {
  const TokenizerKind kind = drawn.setup.config_as<GeneratorConfig>().tokenizer.kind;
  // What a tokenizer takes back was sent; the original splits characters.
  if (kind == TokenizerKind::kIdsBackspace) return {};
  if (kind == TokenizerKind::kBytes && !is_documented(drawn)) return {};
  Variation varied;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    const auto* generate = op.as<Generate>();
    if (generate == nullptr) {
      varied.insert(op);
      continue;
    }
    Op streaming = Op::of(
        GenerateStream{generate->prompt, generate->sampling, generate->cancel_after_forward});
    if (is_documented(drawn) || streams_all(drawn, at, *generate))
      varied.pair(at, std::move(streaming), as_result);
    else
      varied.insert(std::move(streaming));
  }
  return varied.pairs.empty() ? Variation() : varied;
}

// ---- batch_does_not_show ----

Variation batched(const Drawn& drawn) {
  const PagedOption paged = drawn.setup.config_as<GeneratorConfig>().paged;
  // The original loses the blocks of every further request.
  if (!is_documented(drawn) && paged.head_dim > 0 && paged.max_memory_mb > 0) return {};
  Variation varied;
  const Generate* before = nullptr;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    const auto* generate = op.as<Generate>();
    if (generate == nullptr || generate->cancel_after_forward) {
      varied.insert(op);
      continue;
    }
    if (before == nullptr) before = generate;
    varied.pair(at,
                Op::of(BatchGenerate{
                    {{before->prompt, before->sampling}, {generate->prompt, generate->sampling}}}),
                as_result);
    before = generate;
  }
  return varied.pairs.empty() ? Variation() : varied;
}

}  // namespace

std::vector<const Law*> laws() {
  static const std::array kLaws{
      MetamorphicLaw(
          "streamed_is_returned", "the pieces that a stream is sent are the text that is returned",
          kLongScript,
          {.how = "same script, streamed", .applies = has_generators, .transformation = streamed}),
      MetamorphicLaw("batch_does_not_show", "a request of a batch ends as it does alone",
                     kLongScript,
                     {.how = "as the second request of a batch",
                      .applies = has_generators,
                      .transformation = batched})};
  return {&kLaws[0], &kLaws[1]};
}

}  // namespace kvo::generation
