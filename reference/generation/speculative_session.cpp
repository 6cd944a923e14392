// How operations of `generation.speculative` and `generation.adaptive` reach a generator and a
// tracker.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "reference/contract/describe/utf8.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/generation/draft_tracker.hpp"
#include "reference/generation/inner_caches.hpp"
#include "reference/generation/operations.hpp"
#include "reference/generation/session_parts.hpp"
#include "reference/generation/speculative.hpp"
#include "reference/generation/speculative_operations.hpp"
#include "reference/generation/watched_session.hpp"

namespace kvo::generation {
namespace {

/// One model with its caches.
struct Side {
  WatchedModel model;
  std::unique_ptr<CacheSource> caches;
  GeneratorSizes sizes;

  [[nodiscard]] SpeculativePart part() {
    return {.model = model, .caches = *caches, .sizes = sizes};
  }
};

/// What `new` makes.
struct Pair {
  Pair(std::unique_ptr<Side> its_draft, std::unique_ptr<Side> its_target,
       const SpeculativeConfig& config, const sampling::Sampler& sampler, QuirkSet<Quirk> quirks)
      : draft(std::move(its_draft)),
        target(std::move(its_target)),
        tokenizer(make_tokenizer(config.tokenizer)),
        generator({.draft = draft->part(),
                   .target = target->part(),
                   .tokenizer = tokenizer,
                   .sampler = sampler},
                  config.draft_len, config.adaptive.value_or(std::nullopt).value.value_or(true),
                  quirks) {}

  std::unique_ptr<Side> draft;
  std::unique_ptr<Side> target;
  WatchedTokenizer tokenizer;
  SpeculativeGenerator generator;
};

class SpeculativeSession final : public DispatchSession<SpeculativeSession, SpeculativeOps> {
 public:
  SpeculativeSession(Subject inner, const sampling::MakeSampler& make_sampler, Setup setup,
                     const Quirks& quirks)
      : inner_(std::move(inner)),
        setup_(std::move(setup)),
        config_(setup_.config_as<SpeculativeConfig>()),
        quirks_(quirks.own),
        sampler_(make_sampler(quirks.of_sampling), steps_) {}

  [[nodiscard]] std::span<const WorkStep> steps() const override { return steps_.steps(); }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    if (!made_) return std::nullopt;
    if (auto broken = made_->draft->caches->broken_invariant()) return broken;
    return made_->target->caches->broken_invariant();
  }

  Status operator()(const New& /*op*/) {
    probe_.set(probe());
    made_.reset();
    auto draft = make_side(config_.draft, "draft ");
    if (!draft) return draft.error();
    auto target = make_side(config_.target, "target ");
    if (!target) return target.error();
    made_ =
        std::make_unique<Pair>(std::move(*draft), std::move(*target), config_, sampler_, quirks_);
    return {};
  }
  Answer<SpeculativeGenerate::Returns> operator()(const SpeculativeGenerate& op) {
    if (!made_) return {fail(Code::kPrecondition, "no generator")};
    probe_.set(probe());
    const bool by_target = op.cancel_after_target_forward.has_value();
    Countdown countdown(by_target ? op.cancel_after_target_forward : op.cancel_after_forward);
    made_->draft->model.watch([&] {
      if (!by_target) countdown.forward_ended();
    });
    made_->target->model.watch([&] { countdown.forward_ended(); });
    made_->tokenizer.watch();
    steps_.clear();
    const auto text = made_->generator.generate({op.prompt, op.sampling}, countdown.context());
    made_->draft->model.watch_ended();
    made_->target->model.watch_ended();
    Answer<SpeculativeGenerate::Returns> answer;
    if (text)
      answer.returns.text = valid_utf8(*text);
    else
      answer.error = text.error();
    if (setup_.profile == Profile::kDocumented) return answer;
    answer.returns.draft_forwards = made_->draft->model.forwards();
    answer.returns.target_forwards = made_->target->model.forwards();
    answer.returns.decode_calls = made_->tokenizer.calls();
    answer.returns.tokens = made_->tokenizer.last();
    return answer;
  }
  Result<Verify::Returns> operator()(const Verify& op) {
    const Ids none;
    const Ids& draft = op.draft.has_value() ? *op.draft : none;
    const Ids& stop = op.stop.has_value() ? *op.stop : none;
    steps_.clear();
    if (!op.logits.has_value()) return Verify::Returns{};
    if (op.logits->dtype != DType::kF32) return fail(Code::kPrecondition, "logits are f32");
    const auto right = quirks_.has(Quirk::kFirstDraftUnverified)
                           ? verified_but_first(*op.logits, draft, stop, sampler_)
                           : verified(*op.logits, draft, stop, sampler_);
    if (!right) return right.error();
    return Verify::Returns{right->accepted, right->bonus};
  }

 private:
  Result<std::unique_ptr<Side>> make_side(const SpeculativeSide& config, std::string_view who) {
    auto model = make_model(config.model);
    if (!model) return model.error();
    const CacheSizes wanted{.num_layers = config.generator.num_layers,
                            .max_seq_len = config.generator.max_seq_len,
                            .dim = config.model.dim};
    auto caches = contiguous_caches(inner_, setup_, wanted, probe_);
    if (!caches) return caches.error();
    return std::make_unique<Side>(
        Side{WatchedModel(std::move(*model), steps_, who), std::move(*caches), config.generator});
  }

  Subject inner_;
  Setup setup_;
  SpeculativeConfig config_;
  QuirkSet<Quirk> quirks_;
  StepLog steps_;
  WatchedSampler sampler_;
  ProbeSlot probe_;
  std::unique_ptr<Pair> made_;
};

class TrackerSession final : public DispatchSession<TrackerSession, TrackerOps> {
 public:
  Result<Tracked> operator()(const NewTracker& op) {
    if (op.window < 0 || op.window > DraftTracker::kMostOutcomes)
      return fail(Code::kPrecondition, "window");
    tracker_ = probe()([&] {
      return DraftTracker(TrackerSizes{op.initial, op.min, op.max, op.window});
    });
    return shown();
  }
  Result<Tracked> operator()(const RecordOutcomes& op) {
    if (!tracker_) return fail(Code::kPrecondition, "no tracker");
    probe()([&] { tracker_->record(op.accepted, op.proposed); });
    return shown();
  }

 private:
  [[nodiscard]] Tracked shown() const { return {tracker_->current(), tracker_->rate()}; }

  std::optional<DraftTracker> tracker_;
};

constexpr auto kSpeculativeRows =
    joined(joined(rows_of(kQuirkRows, kSpeculativeQuirks), sampling::kQuirkRows),
           rows_of(provider::kQuirkRows, provider::kContiguousQuirks));

}  // namespace

const CacheKind& speculative_kind() {
  static const CacheKind kKind{
      .contract = "generation",
      .cache = "speculative",
      .doc = "text from prompts by guesses of a draft model (zerfoo SpeculativeGenerator)",
      .operations = op_kinds(SpeculativeOps()),
      .config = &type_of<SpeculativeConfig>(),
      .quirks = kSpeculativeRows,
      .repeatable = false,
      .inner = stand_ins()};
  return kKind;
}

const CacheKind& adaptive_kind() {
  static const CacheKind kKind{.contract = "generation",
                               .cache = "adaptive",
                               .doc = "draft length by what was accepted",
                               .operations = op_kinds(TrackerOps()),
                               .config = &type_of<TrackerConfig>()};
  return kKind;
}

Subject make_speculative_subject(const std::string& variant, const std::string& doc,
                                 const sampling::MakeSampler& make_sampler,
                                 const InnerSubjects& inner) {
  Subject subject{
      .kind = &speculative_kind(),
      .variant = variant,
      .doc = doc,
      .open = [inner, make_sampler](const Setup& setup) -> Result<std::unique_ptr<Session>> {
        const auto quirks = quirks_of_case(setup, kSpeculativeRows);
        if (!quirks) return quirks.error();
        return std::make_unique<SpeculativeSession>(inner.contiguous, make_sampler, setup, *quirks);
      }};
  subject.over = [variant, doc, make_sampler, inner](const Subject& cache) {
    InnerSubjects other = inner;
    other.contiguous = cache;
    return make_speculative_subject(variant, doc, make_sampler, other);
  };
  return subject;
}

Subject make_tracker_subject(const std::string& variant, const std::string& doc) {
  return {.kind = &adaptive_kind(),
          .variant = variant,
          .doc = doc,
          .open = [](const Setup& /*setup*/) -> Result<std::unique_ptr<Session>> {
            return std::make_unique<TrackerSession>();
          }};
}

}  // namespace kvo::generation

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_SPECULATIVE_OPERATIONS)
KVO_DEFINE_OPERATIONS(KVO_TRACKER_OPERATIONS)
}  // namespace kvo
