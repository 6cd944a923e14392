// The oracle of generations: the text without any cache.
//
// Each token is computed from the whole text so far, over rows that are kept in plain lists and
// thrown away again.
// Judged   every text that was returned or streamed; in the original only where no quirk has a say:
//          requests without stop strings. Of speculative decoding in profile documented: against
//          the target's text alone, whatever draft there is. In the original that every forward
//          stood behind all tokens that were fed before it; documented: that a call leaves the pool
//          as it was.
// Skipped  calls that end early by an error, a cancellation or a consumer; long texts.
#include <string>
#include <utility>

#include "properties/contract_parts.hpp"
#include "properties/generation/recompute.hpp"
#include "reference/contract/describe/utf8.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/generation/operations.hpp"
#include "reference/generation/speculative_operations.hpp"

namespace kvo::generation {
namespace {

using Words = std::optional<std::string>;

/// What both kinds of oracles do.
class TextOracle : public Oracle {
 protected:
  TextOracle(Plain plain, bool judges) : plain_(std::move(plain)), judges_(judges) {}

  [[nodiscard]] bool documented() const { return plain_.profile == Profile::kDocumented; }

  /// Holds a text that a request led to against the one without a cache.
  Words judge(const Request& request, const std::string& text) {
    if (!judges_ || (!documented() && !request.sampling.stop_strings.empty())) return skip();
    const auto plain = plain_text(plain_, request);
    if (!plain) return skip();
    ++counts_.judged;
    if (valid_utf8(*plain) == text) return std::nullopt;
    return "the text is '" + text + "', without a cache it is '" + valid_utf8(*plain) + "'";
  }
  /// Each forward of a call stands behind the tokens that were fed before it.
  /// `first`: tokens that the cache holds of the call before.
  Words judge_log(const Forwards& forwards, std::int64_t first = 0) {
    if (!forwards) return std::nullopt;
    std::int64_t fed = first;
    for (const Forward& forward : *forwards) {
      if (forward.past == 0) fed = 0;  // the next request of a batch
      if (forward.past != fed)
        return "a forward found " + std::to_string(forward.past) + " positions where " +
               std::to_string(fed) + " tokens were fed";
      fed += std::ssize(forward.tokens);
      ++counts_.judged;
    }
    return std::nullopt;
  }

 private:
  Plain plain_;
  bool judges_;
};

/// The pieces of a stream that came to its end.
std::string joined_events(const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events) text += event.token;
  return text;
}

Plain plain_of(const Setup& setup) {
  const auto config = setup.config_as<GeneratorConfig>();
  Plain plain{.model = config.model,
              .tokenizer = config.tokenizer,
              .bos = config.generator.bos,
              .eos = config.generator.eos,
              .most_positions = config.generator.max_seq_len,
              .profile = setup.profile};
  const bool paged = config.paged.head_dim > 0 && config.paged.max_memory_mb > 0;
  // What is never written to never fills.
  if (paged || config.model.layers <= 0) plain.most_positions.reset();
  return plain;
}

class GeneratorOracle final : public TextOracle {
 public:
  explicit GeneratorOracle(const Setup& setup)
      : TextOracle(plain_of(setup), true),
        splits_(setup.profile == Profile::kOriginal),
        keeps_prefix_(
            setup.config_as<GeneratorConfig>().prefill.value_or(PrefillOption()).keep_prefix),
        tokenizer_(setup.config_as<GeneratorConfig>().tokenizer.kind) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    Words words;
    visit_op(GeneratorOps(), op, [&](const auto& operation) { words = note(operation, seen); });
    return words;
  }

 private:
  Words note(const New& /*op*/, const Observation& /*seen*/) {
    free_.reset();
    return std::nullopt;
  }
  Words note(const PoolDrain& /*op*/, const Observation& /*seen*/) {
    free_.reset();
    return std::nullopt;
  }
  Words note(const PoolAvailable& /*op*/, const Observation& seen) {
    if (seen.error || !documented() || keeps_prefix_) return std::nullopt;
    const auto before = std::exchange(free_, seen.as<PoolAvailable::Returns>().n.value);
    if (!before || before == free_) return std::nullopt;
    return "of " + std::to_string(*before) + " free blocks calls left " +
           std::to_string(free_.value_or(-1));
  }
  Words note(const Generate& op, const Observation& seen) {
    if (!seen.returns) return skip();
    const auto& returns = seen.as<Generate::Returns>();
    if (Words words = judge_log(returns.forwards, held(returns.forwards))) return words;
    if (seen.error || op.cancel_after_forward) return skip();
    return judge({op.prompt, op.sampling}, *returns.text);
  }
  Words note(const GenerateStream& op, const Observation& seen) {
    if (!seen.returns) return skip();
    const auto& returns = seen.as<GenerateStream::Returns>();
    if (Words words = judge_log(returns.forwards, held(returns.forwards))) return words;
    if (seen.error || op.cancel_after_forward || op.cancel_at_event) return skip();
    return streamed({op.prompt, op.sampling}, returns.events);
  }
  Words note(const BatchGenerate& op, const Observation& seen) { return batch(op.requests, seen); }
  Words note(const BatchGenerateStream& op, const Observation& seen) {
    return batch(op.requests, seen);
  }

  /// What a call found in the cache that it went on with.
  [[nodiscard]] std::int64_t held(const Forwards& forwards) const {
    return keeps_prefix_ && forwards && !forwards->empty() ? forwards->front().past : 0;
  }
  Words streamed(const Request& request, const std::vector<Event>& events) {
    // Text that is taken back was sent; the original splits characters.
    if (tokenizer_ == TokenizerKind::kIdsBackspace) return skip();
    if (tokenizer_ == TokenizerKind::kBytes && splits_) return skip();
    return judge(request, joined_events(events));
  }
  Words batch(const std::vector<Request>& requests, const Observation& seen) {
    if (seen.error || !seen.returns) return skip();
    const auto& returns = seen.as<BatchReturns>();
    if (!keeps_prefix_)
      if (Words words = judge_log(returns.forwards)) return words;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const BatchResult& result = returns.results[i];
      Words words;
      if (result.error)
        words = skip();
      else
        words = result.text ? judge(requests[i], *result.text)
                            : streamed(requests[i], result.events.value_or(std::vector<Event>()));
      if (words) return "request " + std::to_string(i) + ": " + *words;
    }
    return std::nullopt;
  }

  bool splits_;
  bool keeps_prefix_;
  TokenizerKind tokenizer_;
  std::optional<std::int64_t> free_;  ///< blocks of the pool, when they were last looked at
};

Plain target_of(const Setup& setup) {
  const auto config = setup.config_as<SpeculativeConfig>();
  return {.model = config.target.model,
          .tokenizer = config.tokenizer,
          .bos = config.target.generator.bos,
          .eos = config.target.generator.eos,
          .most_positions = config.target.generator.max_seq_len,
          .profile = setup.profile};
}

class SpeculativeOracle final : public TextOracle {
 public:
  explicit SpeculativeOracle(const Setup& setup)
      : TextOracle(target_of(setup), setup.profile == Profile::kDocumented) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    const auto* generate = op.as<SpeculativeGenerate>();
    if (generate == nullptr) return std::nullopt;
    if (seen.error || !seen.returns || generate->cancel_after_forward ||
        generate->cancel_after_target_forward)
      return skip();
    return judge({generate->prompt, generate->sampling},
                 *seen.as<SpeculativeGenerate::Returns>().text);
  }
};

}  // namespace

std::unique_ptr<Oracle> recompute_oracle(const CacheKind& kind, const Setup& setup) {
  if (&kind == &speculative_kind()) return std::make_unique<SpeculativeOracle>(setup);
  if (&kind == &contiguous_kind() || &kind == &paged_kind() || &kind == &tensor_kind())
    return std::make_unique<GeneratorOracle>(setup);
  return nullptr;
}

}  // namespace kvo::generation
