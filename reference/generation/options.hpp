// reference/generation/options.hpp: what a generator of a case is made of, described.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/contract/describe/type.hpp"

namespace kvo::generation {

/// Token ids. Texts and token ids of a case are all there is to see of a model.
using Ids = std::vector<std::int64_t>;

struct GeneratorSizes {
  std::int64_t num_layers = 0;
  std::int64_t max_seq_len = 0;
  std::int64_t bos = 0;
  std::int64_t eos = 0;
  std::int64_t vocab_size = 0;
};
KVO_DESCRIBE(GeneratorSizes, (num_layers, "layers of the cache of a call"),
             (max_seq_len, "positions of a sequence at most"),
             (bos, "token put in front of a prompt; 0 or less: none"), (eos, "token that ends"),
             (vocab_size, "tokens; not looked at (ZF-90)"))

enum class ModelKind : std::uint8_t {
  kScript,     ///< one token a position
  kRows,       ///< the logits of each position
  kHash,       ///< a hash of what the last layer's cache shows
  kAttention,  ///< attention over what the caches of all layers show
};
BOOST_DESCRIBE_ENUM(ModelKind, kScript, kRows, kHash, kAttention)

struct ModelConfig {
  ModelKind kind = ModelKind::kScript;
  std::int64_t layers = 0;
  std::int64_t dim = 0;
  std::int64_t vocab = 0;
  std::optional<std::vector<std::int64_t>> script = std::nullopt;
  std::optional<std::vector<std::vector<float>>> rows = std::nullopt;
  std::optional<std::int64_t> salt = std::nullopt;
  std::optional<std::int64_t> flip_mod = std::nullopt;
  std::optional<std::int64_t> heads = std::nullopt;
  std::optional<std::int64_t> fail_at = std::nullopt;
  std::optional<bool> rank2 = std::nullopt;
};
KVO_DESCRIBE(ModelConfig, (kind, "what the logits are made of: script, rows, hash, attention"),
             (layers, "layers that it writes to"), (dim, "elements of a row of the cache"),
             (vocab, "tokens that it gives logits for"),
             (script, "of script: the token of each position, the last one from there on"),
             (rows, "of rows: the logits of each position, the last ones from there on"),
             (salt, "of hash and attention: which model of many"),
             (flip_mod, "of hash: every so many hashes another token; 0: never"),
             (heads, "of attention: heads that share dim; absent: 1"),
             (fail_at, "tokens behind which a forward fails; 0: none"),
             (rank2, "whether logits are [position, vocab]; absent: [1, position, vocab]"))

enum class TokenizerKind : std::uint8_t {
  kIds,           ///< numbers; pieces are put together
  kIdsBackspace,  ///< the same; a piece that is U+0008 takes the byte before it away
  kWhitespace,    ///< words
  kBytes,         ///< one token a byte
};
BOOST_DESCRIBE_ENUM(TokenizerKind, kIds, kIdsBackspace, kWhitespace, kBytes)

struct TokenizerConfig {
  TokenizerKind kind = TokenizerKind::kIds;
  std::vector<std::string> pieces;
};
KVO_DESCRIBE(TokenizerConfig, (kind, "ids, ids_backspace, whitespace or bytes"),
             (pieces, "text of each token; of whitespace from token 4 on; of bytes not used"))

struct PagedOption {
  std::int64_t head_dim = 0;
  std::int64_t max_memory_mb = 0;
};
KVO_DESCRIBE(PagedOption, (head_dim, "elements of a row; 0: the option is not given"),
             (max_memory_mb, "memory of the pool in MB of 2^20 bytes; 0: not given"))

/// How a call feeds its prompt. Both are ways of engines to do the same work, so texts do not
/// change: chunked prefill, and the prefix of the last call kept in a slot (B031).
struct PrefillOption {
  std::int64_t chunk = 0;
  bool keep_prefix = false;
};
KVO_DESCRIBE(PrefillOption, (chunk, "tokens of a forward at most; 0: all of the prompt"),
             (keep_prefix,
              "whether a call goes on with the cache of the one before, cut to what "
              "their tokens begin with alike"))

enum class Engine : std::uint8_t { kPlain, kUploader };
BOOST_DESCRIBE_ENUM(Engine, kPlain, kUploader)

/// The config of `generation.contiguous`, `paged` and `tensor`: from it follows which cache a call
/// has (ZF-76), whatever the kind.
struct GeneratorConfig {
  Engine engine = Engine::kPlain;
  GeneratorSizes generator;
  std::string kv_dtype;
  ModelConfig model;
  PagedOption paged;
  std::optional<PrefillOption> prefill = std::nullopt;
  TokenizerConfig tokenizer;
};
KVO_DESCRIBE(GeneratorConfig, (engine, "uploader: can upload weights, so that caches are tensor"),
             (generator, "sizes and tokens of the generator"),
             (kv_dtype, "fp16, or nothing for f32"), (model, "the model"),
             (paged, "the paged option"),
             (prefill, "how prompts are fed; absent: at once, to a fresh cache"),
             (tokenizer, "the tokenizer"))

/// One of the two models of speculative decoding.
struct SpeculativeSide {
  GeneratorSizes generator;
  ModelConfig model;
};
KVO_DESCRIBE(SpeculativeSide, (generator, "sizes and tokens of its generator"),
             (model, "the model"))

struct SpeculativeConfig {
  std::optional<Nullable<bool>> adaptive = std::nullopt;
  SpeculativeSide draft;
  std::int64_t draft_len = 0;
  SpeculativeSide target;
  TokenizerConfig tokenizer;
};
KVO_DESCRIBE(SpeculativeConfig,
             (adaptive, "whether the draft length adapts; absent or null: it does"),
             (draft, "the model that guesses"),
             (draft_len, "tokens that a round guesses; 0 or less: 4"),
             (target, "the model whose tokens count"), (tokenizer, "the tokenizer of both"))

/// The config of `generation.adaptive`: repeats what `new` says, for people; not used.
struct TrackerConfig {
  std::optional<std::int64_t> initial = std::nullopt;
  std::optional<std::int64_t> min = std::nullopt;
  std::optional<std::int64_t> max = std::nullopt;
  std::optional<std::int64_t> window = std::nullopt;
};
KVO_DESCRIBE(TrackerConfig, (initial, "draft length at first"), (min, "least draft length"),
             (max, "most draft length"), (window, "outcomes that are held"))

}  // namespace kvo::generation
