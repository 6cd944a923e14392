#include "reference/generation/speculative.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "reference/generation/draft_tracker.hpp"

namespace kvo::generation {
namespace {

constexpr std::int64_t kDraftLength = 4;

bool is_in(const Ids& ids, std::int64_t id) {
  return std::ranges::find(ids, id) != ids.end();
}

std::int64_t rows_of(const Tensor& logits) {
  return logits.shape.size() > 1 ? logits.shape[1] : 0;
}

/// One call of a SpeculativeGenerator.
class Call {
 public:
  Call(const SpeculativeParts& parts, provider::Provider& draft, provider::Provider& target,
       std::optional<DraftTracker> tracker, std::int64_t draft_len, QuirkSet<Quirk> quirks,
       const Request& request, const Context& context)
      : parts_(parts),
        draft_(draft),
        target_(target),
        tracker_(std::move(tracker)),
        draft_len_(draft_len),
        quirks_(quirks),
        context_(context),
        most_(most_tokens(request.sampling)),
        stops_(stop_set(request.sampling, parts.target.sizes.eos, quirks)),
        out_(parts.tokenizer, request.sampling.stop_strings, nullptr, quirks) {}

  /// The whole call; at its end all ids are decoded (ZF-108).
  Result<std::string> run(std::string_view prompt) {
    if (const Status done = prefill(prompt); !done) return done.error();
    while (!ended_ && std::ssize(out_.ids()) < most_) {
      if (is_endless(out_.ids(), parts_.target.caches)) return fail_other("endless");
      if (context_.cancelled) {
        if (!has(Quirk::kCancelIsNoError)) return fail_other("canceled");
        break;
      }
      const Status done = has(Quirk::kFirstDraftUnverified) ? unverified_round() : round();
      if (!done) return done.error();
    }
    if (!stopped_)
      if (const Status done = out_.finish(); !done) return done.error();
    return out_.text();
  }

 private:
  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  /// A round of the original has nothing to verify without a draft.
  [[nodiscard]] bool draft_may_not_fail() const {
    return has(Quirk::kDraftFailureFails) || has(Quirk::kFirstDraftUnverified);
  }
  /// Tokens of prompt and text.
  [[nodiscard]] std::int64_t length() const { return prompt_length_ + std::ssize(out_.ids()); }

  // ZF-101.
  Status prefill(std::string_view prompt) {
    auto ids = encoded(parts_.tokenizer, prompt);
    if (!ids) return ids.error();
    const std::int64_t bos = parts_.target.sizes.bos;
    if (bos > 0 && !has(Quirk::kNoBos)) ids->insert(ids->begin(), bos);
    prompt_length_ = std::ssize(*ids);
    if (context_.cancelled && !has(Quirk::kCancelIsNoError)) return fail_other("canceled");
    if (const auto logits = parts_.draft.model.forward(*ids, draft_); !logits) {
      if (draft_may_not_fail()) return at_stage(logits.error(), "draft_prefill");
      drafts_ = false;
    }
    if (context_.cancelled && !has(Quirk::kCancelIsNoError)) return fail_other("canceled");
    const auto logits = parts_.target.model.forward(*ids, target_);
    if (!logits) return at_stage(logits.error(), "target_prefill");
    const auto first = target_token(*logits, rows_of(*logits) - 1, parts_.choose);
    if (!first) return at_stage(first.error(), "target_prefill");
    return emit(*first);
  }

  /// Adds a token to the text, unless it ends it (ZF-105).
  Status emit(std::int64_t id) {
    if (is_in(stops_, id)) {
      ended_ = true;
      return {};
    }
    if (has(Quirk::kStopOncePerRound))
      out_.keep(id);
    else if (const Status done = looked(out_.add(id)); !done)
      return done;
    ended_ = ended_ || std::ssize(out_.ids()) >= most_;
    return {};
  }
  Status looked(const Result<bool>& stop) {
    if (!stop) return stop.error();
    stopped_ = *stop;
    ended_ = ended_ || stopped_;
    return {};
  }

  /// Up to that many tokens that the draft model guesses behind the text (ZF-103).
  Result<Ids> drafted() {
    const std::int64_t wanted = tracker_ ? tracker_->current() : draft_len_;
    const std::int64_t most = std::min(wanted, most_ - std::ssize(out_.ids()));
    Ids draft;
    std::int64_t fed = out_.ids().back();
    while (drafts_ && std::ssize(draft) < most && (draft.empty() || !is_in(stops_, fed))) {
      const auto logits = parts_.draft.model.forward(std::span(&fed, 1), draft_);
      const auto guess = logits ? target_token(*logits, rows_of(*logits) - 1, parts_.choose)
                                : Result<std::int64_t>(logits.error());
      if (!guess) {
        if (draft_may_not_fail()) return at_stage(guess.error(), "draft");
        drafts_ = false;
        break;
      }
      draft.push_back(*guess);
      fed = *guess;
    }
    return draft;
  }

  /// A round whose draft tokens count only if they are the target's (ZF-104, documented).
  Status round() {
    const auto guessed = drafted();
    if (!guessed) return guessed.error();
    Ids draft = *guessed;
    auto logits = verify(draft);
    if (!logits && !draft.empty()) {  // guesses take room that the text may not need
      draft.clear();
      logits = verify(draft);
    }
    if (!logits) return failed(logits.error(), "decode");
    const auto right = verified(*logits, draft, stops_, parts_.choose);
    if (!right) return at_stage(right.error(), "decode");
    if (const Status done = emit_all(*right); !done) return done;
    if (ended_) return {};
    record(std::ssize(right->accepted), std::ssize(draft));
    if (const Status done = target_.truncate(length() - 1); !done) return done;
    follow();
    return {};
  }

  /// The target's logits behind the text and behind each draft token. On an error the cache is as
  /// before.
  Result<Tensor> verify(const Ids& draft) {
    Ids fed{out_.ids().back()};
    fed.insert(fed.end(), draft.begin(), draft.end());
    auto logits = parts_.target.model.forward(fed, target_);
    if (!logits)
      if (const Status done = target_.truncate(length() - 1); !done) return done.error();
    return logits;
  }

  /// Brings the draft's cache to the text without its last token (ZF-106).
  void follow() {
    if (!drafts_) return;
    const std::int64_t wanted = length() - 1;
    const Status done = draft_.truncate(wanted);
    const auto missing =
        static_cast<std::size_t>(std::max<std::int64_t>(wanted - draft_.seq_len(), 0));
    drafts_ = done.has_value() && missing < out_.ids().size();
    if (!drafts_ || missing == 0) return;
    const std::span<const std::int64_t> ids = out_.ids();
    drafts_ = parts_.draft.model.forward(ids.last(missing + 1).first(missing), draft_).has_value();
  }

  /// A round of the original (ZF-102 to ZF-107).
  Status unverified_round() {
    const auto draft = drafted();
    if (!draft) return draft.error();
    const auto logits = parts_.target.model.forward(*draft, target_);
    if (!logits) return failed(logits.error(), "verify");
    const auto right = verified_but_first(*logits, *draft, stops_, parts_.choose);
    if (!right) return at_stage(right.error(), "verify");
    if (const Status done = emit_all(*right); !done) return done;
    if (ended_) return {};
    const std::int64_t unseen = has(Quirk::kUnverifiedCounts) ? 0 : 1;
    record(std::ssize(right->accepted) - unseen, std::ssize(*draft));
    for (provider::Provider* cache : {&draft_, &target_})
      if (cache->seq_len() > length())
        if (const Status done = cache->truncate(length()); !done) return done;
    return has(Quirk::kStopOncePerRound) ? looked(out_.look()) : Status();
  }

  Status emit_all(const Verified& right) {
    Ids all = right.accepted;
    if (right.bonus >= 0) all.push_back(right.bonus);
    for (const std::int64_t id : all) {
      if (ended_) break;
      if (const Status done = emit(id); !done) return done;
    }
    return {};
  }
  void record(std::int64_t accepted, std::int64_t proposed) {
    if (tracker_ && proposed > 0) tracker_->record(accepted, proposed);
  }
  /// A cache that is full ends the text.
  Status failed(const Error& error, std::string_view stage) {
    if (error.code != Code::kFull || has(Quirk::kFullLosesText)) return at_stage(error, stage);
    ended_ = true;
    return {};
  }

  const SpeculativeParts& parts_;
  provider::Provider& draft_;
  provider::Provider& target_;
  std::optional<DraftTracker> tracker_;
  std::int64_t draft_len_;
  QuirkSet<Quirk> quirks_;
  const Context& context_;
  std::int64_t most_;
  Ids stops_;
  TextOut out_;
  std::int64_t prompt_length_ = 0;
  bool drafts_ = true;    ///< the draft model works
  bool ended_ = false;    ///< nothing is added any more
  bool stopped_ = false;  ///< by a stop string: the text is there
};

}  // namespace

Result<std::int64_t> target_token(const Tensor& logits, std::int64_t row,
                                  const ChooseToken& choose) {
  static const SamplingConfig kGreedy{.temperature = 0};
  sampling::Random random(0);  // greedy choices draw nothing
  if (logits.shape.size() != 3) return choose(view_of(logits), kGreedy, {}, random);
  if (row < 0 || row >= logits.shape[1] || logits.shape[0] < 1) return fail(Code::kBadShape, "row");
  const auto vocab = static_cast<std::size_t>(logits.shape[2]);
  const auto cells = logits.floats().subspan(static_cast<std::size_t>(row) * vocab, vocab);
  return choose(view_of(tensor_of({1, 1, logits.shape[2]}, cells)), kGreedy, {}, random);
}

Result<Verified> verified(const Tensor& logits, const Ids& draft, const Ids& stops,
                          const ChooseToken& choose) {
  Verified right;
  for (std::int64_t row = 0; row < rows_of(logits); ++row) {
    const auto token = target_token(logits, row, choose);
    if (!token) return token.error();
    if (row == std::ssize(draft) || draft[static_cast<std::size_t>(row)] != *token) {
      right.bonus = *token;
      break;
    }
    right.accepted.push_back(*token);
    if (is_in(stops, *token)) break;
  }
  return right;
}

Result<Verified> verified_but_first(const Tensor& logits, const Ids& draft, const Ids& stops,
                                    const ChooseToken& choose) {
  Verified right;
  for (std::int64_t row = 0; row < std::min(rows_of(logits), std::ssize(draft)); ++row) {
    const auto token = target_token(logits, row, choose);
    if (!token) return token.error();
    const auto next = static_cast<std::size_t>(row) + 1;
    right.accepted.push_back(draft[next - 1]);
    const bool last = next == draft.size();
    if (!last && draft[next] == *token) continue;
    if (!last || !is_in(stops, draft.back())) right.bonus = *token;
    break;
  }
  return right;
}

SpeculativeGenerator::SpeculativeGenerator(const SpeculativeParts& parts, std::int64_t draft_len,
                                           bool adaptive, QuirkSet<Quirk> quirks)
    : parts_(parts),
      draft_len_(draft_len > 0 ? draft_len : kDraftLength),
      adaptive_(adaptive),
      quirks_(quirks) {}

Result<std::string> SpeculativeGenerator::generate(const Request& request, const Context& context) {
  const SamplingConfig& sampling = request.sampling;
  if (!quirks_.has(Quirk::kSamplingIgnored) &&
      (sampling.temperature > 0 || sampling::penalty_is_on(sampling)))
    return fail(Code::kNotSupported, "speculative decoding is greedy");
  const auto draft = parts_.draft.caches.make();
  if (!draft) return draft.error();
  const auto target = parts_.target.caches.make();
  if (!target) return target.error();
  std::optional<DraftTracker> tracker;
  if (adaptive_) tracker.emplace(TrackerSizes{.initial = draft_len_});
  Call call(parts_, **draft, **target, std::move(tracker), draft_len_, quirks_, request, context);
  auto text = call.run(request.prompt);
  for (const auto& [source, cache] : {std::pair{&parts_.draft.caches, draft->get()},
                                      std::pair{&parts_.target.caches, target->get()}})
    if (const Status returned = source->give_back(*cache); text && !returned)
      return returned.error();
  return text;
}

}  // namespace kvo::generation
