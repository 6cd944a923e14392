#include "properties/generation/draws.hpp"

#include <algorithm>
#include <utility>

namespace kvo::generation {
namespace {

constexpr std::int64_t kBytes = 256;
constexpr std::int64_t kMostTokens = 257;  // of a prompt, and of a text

std::string drawn_piece(Draw& draw) {
  return draw.one_of<const char*>({"a", "b", "c", "ab", "bc", "cab", "\u00e9", "a\u20ac", " ", ""});
}

Ids drawn_tokens(Draw& draw, std::int64_t count, std::int64_t vocab) {
  Ids tokens;
  for (; count > 0; --count) tokens.push_back(draw.between(0, vocab - 1));
  return tokens;
}

std::string drawn_prompt(Draw& draw, const RequestTerms& terms) {
  if (draw.percent(3)) return draw.percent(50) ? "" : " \t";
  if (draw.percent(3)) return "2 x";
  const bool large = terms.large && draw.percent(15);
  const std::int64_t most = draw.percent(5) ? 60 : 14;
  const TokenizerKind kind = terms.tokenizer.kind;
  std::string prompt;
  const std::int64_t length = large ? draw.edge(60, kMostTokens) : draw.size(1, most);
  for (const std::int64_t token : drawn_tokens(draw, length, terms.vocab)) {
    if (kind == TokenizerKind::kBytes)
      prompt += draw.one_of<const char*>({"a", "b", " ", "\u00e9", "\u20ac"});
    else if (kind == TokenizerKind::kWhitespace)
      prompt += (prompt.empty() ? "" : " ") + drawn_piece(draw);
    else
      prompt += (prompt.empty() ? "" : " ") + std::to_string(token);
  }
  return prompt;
}

std::string drawn_stop(Draw& draw, const RequestTerms& terms) {
  if (draw.percent(6)) return "";
  std::string stop;
  for (std::int64_t parts = draw.between(1, 2); parts > 0; --parts)
    stop += terms.tokenizer.pieces.empty() || draw.percent(30)
                ? drawn_piece(draw)
                : terms.tokenizer.pieces[draw.below(terms.tokenizer.pieces.size())];
  return stop;
}

std::int64_t drawn_most(Draw& draw, const RequestTerms& terms) {
  if (terms.large && draw.percent(10)) return draw.edge(40, kMostTokens);
  if (draw.percent(4)) return draw.one_of<std::int64_t>({0, -5});
  if (terms.bounded && draw.percent(4)) return std::int64_t{1} << 31U;
  return draw.percent(10) ? draw.between(17, 40) : draw.between(1, 12);
}

}  // namespace

ModelConfig drawn_model(Draw& draw, bool bytes, Scale scale) {
  const bool large = scale == Scale::kLarge;
  const std::int64_t heads = large && draw.percent(20) ? draw.edge(4, 17) : draw.between(1, 3);
  ModelConfig model{.layers = large && draw.percent(20) ? draw.edge(5, 17) : draw.between(1, 3),
                    .dim = heads * draw.between(1, 2),
                    .vocab = draw.percent(5) ? 1 : draw.between(3, 24)};
  if (large && draw.percent(20)) model.vocab = draw.edge(24, 1'025);
  if (bytes) model.vocab = kBytes;
  const std::uint64_t kind = draw.below(100);
  if (kind < 60) {
    model.kind = ModelKind::kAttention;
    model.heads = heads;
    model.salt = draw.between(0, 1000);
  } else if (kind < 80) {
    model.kind = ModelKind::kHash;
    model.salt = draw.between(0, 1000);
    model.flip_mod = draw.one_of<std::int64_t>({0, 0, 3, 7});
  } else if (kind < 95) {
    model.kind = ModelKind::kScript;
    model.script = drawn_tokens(draw, draw.between(1, 20), model.vocab);
  } else {
    model.kind = ModelKind::kRows;
    model.rows.emplace();
    for (std::int64_t rows = draw.between(1, 4); rows > 0; --rows) {
      auto& row = model.rows->emplace_back();
      for (std::int64_t v = 0; v < model.vocab; ++v)
        row.push_back(draw.one_of<float>(
            {0, 1, 2, -1, 1e30F, __builtin_inff(), -__builtin_inff(), __builtin_nanf("")}));
    }
  }
  if (draw.percent(4)) model.fail_at = draw.between(1, 20);
  if (draw.percent(2)) model.rank2 = true;
  return model;
}

TokenizerConfig drawn_tokenizer(Draw& draw, std::int64_t vocab, bool bytes) {
  if (bytes) return {.kind = TokenizerKind::kBytes, .pieces = {}};
  TokenizerConfig tokenizer{.kind = draw.one_of<TokenizerKind>(
                                {TokenizerKind::kIds, TokenizerKind::kIds, TokenizerKind::kIds,
                                 TokenizerKind::kIdsBackspace, TokenizerKind::kWhitespace}),
                            .pieces = {}};
  const std::int64_t pieces = vocab - (draw.percent(8) ? 1 : 0);
  for (std::int64_t i = 0; i < pieces; ++i)
    tokenizer.pieces.push_back(tokenizer.kind == TokenizerKind::kIdsBackspace && draw.percent(25)
                                   ? "\b"
                                   : drawn_piece(draw));
  return tokenizer;
}

GeneratorSizes drawn_sizes(Draw& draw, const ModelConfig& model, Scale scale) {
  GeneratorSizes sizes{.num_layers = model.layers,
                       .max_seq_len = draw.percent(6) ? draw.between(0, 2) : draw.between(8, 44),
                       .bos = draw.one_of<std::int64_t>({0, 0, -1, 1, 2}),
                       .eos = draw.one_of<std::int64_t>({999, 999, 0, -1, 1}),
                       .vocab_size = model.vocab};
  if (scale == Scale::kLarge && draw.percent(60)) sizes.max_seq_len = draw.edge(44, 513);
  if (draw.percent(3)) sizes.num_layers += draw.one_of<std::int64_t>({-1, 1});
  return sizes;
}

std::uint64_t cost_of(const Request& request, const ModelConfig& model) {
  constexpr std::int64_t kForward = 10'000;  // whatever the sizes, over every cache
  constexpr std::int64_t kCells = 8;         // of a row of K, per layer
  const std::int64_t prompt = 1 + std::ranges::count(request.prompt, ' ');
  const std::int64_t asked = request.sampling.max_new_tokens;  // 0 or less: 256
  const std::int64_t text = asked > 0 ? std::min(asked, kMostTokens) : kMostTokens;
  const std::int64_t tokens = prompt + text;
  return static_cast<std::uint64_t>(
      tokens * (kForward + tokens * model.layers * model.dim * kCells + model.vocab * kCells));
}

Request drawn_request(Draw& draw, const RequestTerms& terms) {
  SamplingConfig sampling{.temperature = draw.percent(5) ? -1.0 : 0.0};
  if (!terms.greedy || draw.percent(10)) {
    if (draw.percent(20)) sampling.temperature = draw.one_of<double>({0.5, 1, 3});
    if (draw.percent(30)) sampling.top_k = draw.one_of<std::int64_t>({1, 3, 1000, -1});
    if (draw.percent(30)) sampling.top_p = draw.one_of<double>({0, 0.5, 0.9, 2, -1});
    if (draw.percent(25)) sampling.repetition_penalty = draw.one_of<double>({1.25, 2, 0.5, 0, -1});
  }
  sampling.max_new_tokens = drawn_most(draw, terms);
  if (draw.percent(15))
    sampling.stop_token_ids = drawn_tokens(draw, draw.between(1, 2), terms.vocab);
  if (draw.percent(35))
    for (std::int64_t stops = draw.between(1, 3); stops > 0; --stops)
      sampling.stop_strings.push_back(drawn_stop(draw, terms));
  return {drawn_prompt(draw, terms), std::move(sampling)};
}

}  // namespace kvo::generation
