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

KVO_RECORD(GeneratorSizes, (std::int64_t, num_layers, "layers of the cache of a call"),
           (std::int64_t, max_seq_len, "positions of a sequence at most"),
           (std::int64_t, bos, "token put in front of a prompt; 0 or less: none"),
           (std::int64_t, eos, "token that ends"),
           (std::int64_t, vocab_size, "tokens; not looked at (ZF-90)"))

enum class ModelKind : std::uint8_t {
  kScript,     ///< one token a position
  kRows,       ///< the logits of each position
  kHash,       ///< a hash of what the last layer's cache shows
  kAttention,  ///< attention over what the caches of all layers show
};
BOOST_DESCRIBE_ENUM(ModelKind, kScript, kRows, kHash, kAttention)

KVO_RECORD(ModelConfig,
           (ModelKind, kind, "what the logits are made of: script, rows, hash, attention",
            ModelKind::kScript),
           (std::int64_t, layers, "layers that it writes to"),
           (std::int64_t, dim, "elements of a row of the cache"),
           (std::int64_t, vocab, "tokens that it gives logits for"),
           (std::optional<std::vector<std::int64_t>>, script,
            "of script: the token of each position, the last one from there on"),
           (std::optional<std::vector<std::vector<float>>>, rows,
            "of rows: the logits of each position, the last ones from there on"),
           (std::optional<std::int64_t>, salt, "of hash and attention: which model of many"),
           (std::optional<std::int64_t>, flip_mod,
            "of hash: every so many hashes another token; 0: never"),
           (std::optional<std::int64_t>, heads, "of attention: heads that share dim; absent: 1"),
           (std::optional<std::int64_t>, fail_at, "tokens behind which a forward fails; 0: none"),
           (std::optional<bool>, rank2,
            "whether logits are [position, vocab]; absent: [1, position, vocab]"))

enum class TokenizerKind : std::uint8_t {
  kIds,           ///< numbers; pieces are put together
  kIdsBackspace,  ///< the same; a piece that is U+0008 takes the byte before it away
  kWhitespace,    ///< words
  kBytes,         ///< one token a byte
};
BOOST_DESCRIBE_ENUM(TokenizerKind, kIds, kIdsBackspace, kWhitespace, kBytes)

KVO_RECORD(TokenizerConfig,
           (TokenizerKind, kind, "ids, ids_backspace, whitespace or bytes", TokenizerKind::kIds),
           (std::vector<std::string>, pieces,
            "text of each token; of whitespace from token 4 on; of bytes not used"))

KVO_RECORD(PagedOption, (std::int64_t, head_dim, "elements of a row; 0: the option is not given"),
           (std::int64_t, max_memory_mb, "memory of the pool in MB of 2^20 bytes; 0: not given"))

/// How a call feeds its prompt. Both are ways of engines to do the same work, so texts do not
/// change: chunked prefill, and the prefix of the last call kept in a slot (B031).
KVO_RECORD(PrefillOption,
           (std::int64_t, chunk, "tokens of a forward at most; 0: all of the prompt"),
           (bool, keep_prefix,
            "whether a call goes on with the cache of the one before, cut to what "
            "their tokens begin with alike"))

enum class Engine : std::uint8_t { kPlain, kUploader };
BOOST_DESCRIBE_ENUM(Engine, kPlain, kUploader)

/// The config of `generation.contiguous`, `paged` and `tensor`: from it follows which cache a call
/// has (ZF-76), whatever the kind.
KVO_RECORD(GeneratorConfig,
           (Engine, engine, "uploader: can upload weights, so that caches are tensor",
            Engine::kPlain),
           (GeneratorSizes, generator, "sizes and tokens of the generator"),
           (std::string, kv_dtype, "fp16, or nothing for f32"), (ModelConfig, model, "the model"),
           (PagedOption, paged, "the paged option"),
           (std::optional<PrefillOption>, prefill,
            "how prompts are fed; absent: at once, to a fresh cache"),
           (TokenizerConfig, tokenizer, "the tokenizer"))

/// One of the two models of speculative decoding.
KVO_RECORD(SpeculativeSide, (GeneratorSizes, generator, "sizes and tokens of its generator"),
           (ModelConfig, model, "the model"))

KVO_RECORD(SpeculativeConfig,
           (std::optional<Nullable<bool>>, adaptive,
            "whether the draft length adapts; absent or null: it does"),
           (SpeculativeSide, draft, "the model that guesses"),
           (std::int64_t, draft_len, "tokens that a round guesses; 0 or less: 4"),
           (SpeculativeSide, target, "the model whose tokens count"),
           (TokenizerConfig, tokenizer, "the tokenizer of both"))

/// The config of `generation.adaptive`: repeats what `new` says, for people; not used.
KVO_RECORD(TrackerConfig, (std::optional<std::int64_t>, initial, "draft length at first"),
           (std::optional<std::int64_t>, min, "least draft length"),
           (std::optional<std::int64_t>, max, "most draft length"),
           (std::optional<std::int64_t>, window, "outcomes that are held"))

}  // namespace kvo::generation
