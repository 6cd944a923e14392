// properties/generation/draws.hpp: random models, tokenizers and requests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/campaign/generator.hpp"
#include "reference/generation/generator.hpp"
#include "reference/generation/options.hpp"

namespace kvo::generation {

/// A model; mostly one whose tokens hang on every row of the cache.
[[nodiscard]] ModelConfig drawn_model(Draw& draw, bool bytes, Scale scale = Scale::kSmall);
/// A tokenizer for a model's vocabulary, now and then with a piece too few.
[[nodiscard]] TokenizerConfig drawn_tokenizer(Draw& draw, std::int64_t vocab, bool bytes);
/// Sizes that fit the model; now and then they do not.
[[nodiscard]] GeneratorSizes drawn_sizes(Draw& draw, const ModelConfig& model,
                                         Scale scale = Scale::kSmall);

/// What requests of a case are drawn by.
struct RequestTerms {
  TokenizerConfig tokenizer;
  std::int64_t vocab = 1;
  bool bounded = true;  ///< by positions: then any number of tokens may be asked for
  bool greedy = false;  ///< always
  bool large = false;   ///< prompts and texts of hundreds of tokens, now and then
};
/// What a request costs at most in ScriptGenerator::spend, where its model has such sizes.
[[nodiscard]] std::uint64_t cost_of(const Request& request, const ModelConfig& model);
[[nodiscard]] Request drawn_request(Draw& draw, const RequestTerms& terms);

}  // namespace kvo::generation
