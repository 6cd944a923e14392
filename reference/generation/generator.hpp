// reference/generation/generator.hpp: the loop that turns a prompt into a text, over any cache.
//
// Words    forward  one pass of the model: the prompt (prefill), or the last token (decode).
//          event    a piece of text that a stream is sent.
// Source   rules ZF-75 to ZF-89.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/generation/cache_source.hpp"
#include "reference/generation/model.hpp"
#include "reference/generation/options.hpp"
#include "reference/generation/quirks.hpp"
#include "reference/generation/text_out.hpp"
#include "reference/generation/tokenizer.hpp"
#include "reference/sampling/sampler.hpp"

namespace kvo::generation {

using sampling::SamplingConfig;

/// What draws of a call begin with: it draws as if it were the only one.
inline constexpr std::uint64_t kDrawSeed = 1;

/// Chooses the next token by logits, as sampling::Sampler::sample.
using ChooseToken = std::function<Result<std::int64_t>(
    const StridedView& logits, const SamplingConfig& sampling,
    std::span<const std::int64_t> generated, sampling::Random& random)>;

/// Whether a call is cancelled; looked at between forwards.
struct Context {
  bool cancelled = false;
};

/// One prompt and how it is to be gone on with.
KVO_RECORD(Request, (std::string, prompt, "text"),
           (SamplingConfig, sampling, "how tokens are chosen, and when it ends"))

/// What a generator works with; all of it outlives the generator.
struct Parts {
  Model& model;
  Tokenizer& tokenizer;
  CacheSource& caches;
  const ChooseToken& choose;
};

/// Ids that end a text: those of the config and the EOS id (ZF-77.4).
[[nodiscard]] Ids stop_set(const SamplingConfig& sampling, std::int64_t eos,
                           QuirkSet<Quirk> quirks);
/// 256 for 0 or less (ZF-77.1).
[[nodiscard]] std::int64_t most_tokens(const SamplingConfig& sampling);
/// The ids of a prompt, without BOS. Errors  other:encode; other:prompt_empty.
[[nodiscard]] Result<Ids> encoded(Tokenizer& tokenizer, std::string_view prompt);
/// The error, with the stage at which it came up as its detail.
[[nodiscard]] Error at_stage(Error error, std::string_view stage);

/// Whether a text has more tokens than its cache could have held: the cache loses what it is given,
/// so that it never gets full. Drafts give two tokens of text at most for one that is fed.
[[nodiscard]] bool is_endless(const Ids& text, const CacheSource& caches);

/// Text from prompts. Its calls share nothing but the pool behind their caches, and the cache that
/// PrefillOption::keep_prefix keeps; no plan is compiled: that shows in texts of errors only
/// (ZF-81).
class Generator {
 public:
  Generator(const Parts& parts, const GeneratorSizes& sizes, PrefillOption prefill,
            QuirkSet<Quirk> quirks)
      : parts_(parts), sizes_(sizes), prefill_(prefill), quirks_(quirks) {}

  /// The text behind the prompt, without it (ZF-77 to ZF-79).
  /// Errors  other:encode, other:prompt_empty, other:decode; those of model, cache and sampling;
  ///         documented: other:canceled; other:endless: is_endless.
  [[nodiscard]] Result<std::string> generate(const Request& request, const Context& context);
  /// The same in pieces, the last one empty and done (ZF-83 to ZF-87).
  /// Errors  as generate; what the stream answers.
  [[nodiscard]] Status generate_stream(const Request& request, const Context& context,
                                       const Stream& stream);
  /// One after the other, each as generate (ZF-88).
  [[nodiscard]] std::vector<Result<std::string>> batch_generate(
      const std::vector<Request>& requests, const Context& context);
  /// One after the other, each as generate_stream (ZF-89).
  /// Errors  of each request: kBadShape, with kWrongStreamsCancel other:canceled: not one stream
  ///         for each request.
  [[nodiscard]] std::vector<Status> batch_generate_stream(const std::vector<Request>& requests,
                                                          const Context& context,
                                                          const std::vector<Stream>& streams);

 private:
  /// A cache, and the tokens that it holds; it may hold a part of a failed forward behind them.
  struct Slot {
    std::unique_ptr<provider::Provider> cache;
    Ids tokens = {};
  };

  /// A call, with a cache of its own that is given back however it ends, but for
  /// kBlocksNeverReturn; or, where prefixes are kept, with that of the call before.
  /// Errors  as generate and generate_stream.
  [[nodiscard]] Status run(const Request& request, const Context& context, TextOut& out);
  [[nodiscard]] Status run_over(Slot& slot, const Request& request, const Context& context,
                                TextOut& out);
  /// The slot of the last call, or a fresh one. Errors  as of the cache's construction.
  [[nodiscard]] Result<Slot> slot();
  /// Cuts a slot that was kept to what it has in common with `prompt`, which keeps a token at least
  /// to be fed.
  /// Errors  of the cache.
  [[nodiscard]] Status cut_to_prefix(Slot& slot, const Ids& prompt) const;
  /// Feeds tokens, those of a prompt in chunks; the logits behind the last ones. After an error the
  /// slot holds what was fed before the last chunk.
  /// Errors  of model and cache; documented: other:canceled, looked at before each forward.
  [[nodiscard]] Result<Tensor> feed(Slot& slot, std::span<const std::int64_t> ids,
                                    const Context& context);

  Parts parts_;
  GeneratorSizes sizes_;
  PrefillOption prefill_;
  QuirkSet<Quirk> quirks_;
  std::optional<Slot> kept_ = std::nullopt;
};

}  // namespace kvo::generation
