// How operations of `generation.contiguous`, `paged` and `tensor` reach a generator.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/block_pool/quirks.hpp"
#include "reference/contract/describe/utf8.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/generation/draft_tracker.hpp"
#include "reference/generation/inner_caches.hpp"
#include "reference/generation/operations.hpp"
#include "reference/generation/quirks.hpp"
#include "reference/generation/speculative.hpp"
#include "reference/generation/speculative_operations.hpp"
#include "reference/generation/watched_session.hpp"
#include "reference/provider/quirks.hpp"
#include "reference/sampling/quirks.hpp"

namespace kvo::generation {

/// Of the references of contract `provider`, those that a generation can show.
inline constexpr std::array kInnerQuirks = provider::kTracingQuirks;

namespace {

/// What a stream is sent, and what it does then.
class EventLog {
 public:
  EventLog(Countdown& countdown, std::optional<std::int64_t> cancel_at,
           std::optional<std::int64_t> fail_at)
      : countdown_(countdown), cancel_at_(cancel_at), fail_at_(fail_at) {}

  [[nodiscard]] Stream stream() {
    return [this](std::string_view text, bool done) -> Status {
      const std::int64_t at = std::ssize(events);
      events.push_back({valid_utf8(text), done});
      if (cancel_at_ == at) countdown_.cancel();
      if (fail_at_ == at) return fail_other("stream");
      return {};
    };
  }

  std::vector<Event> events;

 private:
  Countdown& countdown_;
  std::optional<std::int64_t> cancel_at_;
  std::optional<std::int64_t> fail_at_;
};

BatchResult ended(const Error& error) {
  BatchResult result{.error = error.code_text()};
  if (!error.detail.empty()) result.stage = error.detail;
  return result;
}

template <class Returns>
Answer<Returns> answer_of(const Result<std::string>& text) {
  if (!text) return {.error = text.error()};
  return {.returns = {.text = valid_utf8(*text)}};
}

Error no_generator() {
  return fail(Code::kPrecondition, "no generator");
}

/// What sessions of both kinds of generators have.
template <class Config>
struct CaseParts {
  CaseParts(const sampling::MakeSampler& make_sampler, Setup its_setup, QuirkSet<Quirk> its_quirks,
            QuirkSet<sampling::Quirk> of_sampling)
      : setup(std::move(its_setup)),
        config(setup.config_as<Config>()),
        quirks(its_quirks),
        choose([this, sampler = std::shared_ptr<sampling::Sampler>(make_sampler(of_sampling))](
                   const StridedView& logits, const SamplingConfig& sampling,
                   std::span<const std::int64_t> generated, sampling::Random& random) {
          auto token = sampler->sample(logits, sampling, generated, random);
          if (token) steps.chose(*token);
          return token;
        }) {}
  CaseParts(const CaseParts&) = delete;
  CaseParts& operator=(const CaseParts&) = delete;

  Setup setup;
  Config config;
  QuirkSet<Quirk> quirks;
  StepLog steps;
  ChooseToken choose;
  ProbeSlot slot;
  Countdown countdown{std::nullopt};
};

/// What `new` makes: a generator with all that it works on.
struct Made {
  Made(std::unique_ptr<Model> its_model, std::unique_ptr<Tokenizer> its_tokenizer,
       std::unique_ptr<CacheSource> its_caches, CaseParts<GeneratorConfig>& parts)
      : model(std::move(its_model), parts.steps),
        tokenizer(std::move(its_tokenizer)),
        caches(std::move(its_caches)),
        generator(
            {.model = model, .tokenizer = tokenizer, .caches = *caches, .choose = parts.choose},
            parts.config.generator, parts.config.prefill.value_or(PrefillOption()), parts.quirks) {}

  WatchedModel model;
  WatchedTokenizer tokenizer;
  std::unique_ptr<CacheSource> caches;
  Generator generator;
};

class GeneratorSession final : public DispatchSession<GeneratorSession, GeneratorOps>,
                               public CaseParts<GeneratorConfig> {
 public:
  template <class... Arguments>
  explicit GeneratorSession(InnerSubjects inner, Arguments&&... parts)
      : CaseParts(std::forward<Arguments>(parts)...), inner_(std::move(inner)) {}

  [[nodiscard]] std::span<const WorkStep> steps() const override {
    return CaseParts::steps.steps();
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return made_ ? made_->caches->broken_invariant() : std::nullopt;
  }

  Status operator()(const New& /*op*/) {
    slot.set(probe());
    made_.reset();
    auto model = make_model(config.model);
    if (!model) return model.error();
    auto caches = make_caches();
    if (!caches) return caches.error();
    made_ = std::make_unique<Made>(std::move(*model), make_tokenizer(config.tokenizer),
                                   std::move(*caches), *this);
    return {};
  }
  Answer<Generate::Returns> operator()(const Generate& op) {
    if (!made_) return {no_generator()};
    begin(op.cancel_after_forward);
    auto answer = answer_of<Generate::Returns>(
        made_->generator.generate({op.prompt, op.sampling}, countdown.context()));
    show_effort(answer.returns);
    return answer;
  }
  Answer<GenerateStream::Returns> operator()(const GenerateStream& op) {
    if (!made_) return {no_generator()};
    begin(op.cancel_after_forward);
    EventLog log(countdown, op.cancel_at_event, op.fail_at_event);
    const Status done = made_->generator.generate_stream({op.prompt, op.sampling},
                                                         countdown.context(), log.stream());
    Answer<GenerateStream::Returns> answer;
    if (!done) answer.error = done.error();
    answer.returns.events = std::move(log.events);
    show_effort(answer.returns);
    return answer;
  }
  Answer<BatchReturns> operator()(const BatchGenerate& op) {
    if (!made_) return {no_generator()};
    begin(std::nullopt);
    Answer<BatchReturns> answer;
    for (const auto& text : made_->generator.batch_generate(op.requests, countdown.context()))
      answer.returns.results.push_back(text ? BatchResult{.text = valid_utf8(*text)}
                                            : ended(text.error()));
    show_effort(answer.returns);
    return answer;
  }
  Answer<BatchReturns> operator()(const BatchGenerateStream& op) {
    constexpr std::int64_t kMostStreams = 4096;
    if (!made_) return {no_generator()};
    if (op.streams < 0 || op.streams > kMostStreams) return {fail(Code::kPrecondition, "streams")};
    begin(std::nullopt);
    std::vector<EventLog> logs(static_cast<std::size_t>(op.streams),
                               EventLog(countdown, std::nullopt, std::nullopt));
    std::vector<Stream> streams;
    for (EventLog& log : logs) streams.push_back(log.stream());
    const std::vector<Status> ends =
        made_->generator.batch_generate_stream(op.requests, countdown.context(), streams);
    Answer<BatchReturns> answer;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      BatchResult& result =
          answer.returns.results.emplace_back(ends[i] ? BatchResult() : ended(ends[i].error()));
      if (i < logs.size()) result.events = std::move(logs[i].events);
    }
    show_effort(answer.returns);
    return answer;
  }
  Result<PoolAvailable::Returns> operator()(const PoolAvailable& /*op*/) {
    if (!made_) return no_generator();
    slot.set(probe());
    const auto pool = made_->caches->pool();
    if (!pool) return pool.error();
    if (!*pool) return PoolAvailable::Returns{};
    return PoolAvailable::Returns{(*pool)->free, (*pool)->cap};
  }
  Result<PoolDrain::Returns> operator()(const PoolDrain& op) {
    if (!made_) return no_generator();
    slot.set(probe());
    const auto taken = made_->caches->drain(op.leave);
    if (!taken) return taken.error();
    return PoolDrain::Returns{*taken};
  }

 private:
  /// ZF-75, ZF-76.
  Result<std::unique_ptr<CacheSource>> make_caches() {
    const GeneratorSizes& sizes = config.generator;
    const CacheSizes wanted{.num_layers = sizes.num_layers,
                            .max_seq_len = sizes.max_seq_len,
                            .dim = config.model.dim,
                            .dtype = config.kv_dtype};
    const bool tensor = config.engine == Engine::kUploader;
    if (config.paged.head_dim > 0 && config.paged.max_memory_mb > 0) {
      auto paged = paged_caches(inner_.paged, setup, wanted, config.paged, slot);
      if (!paged && !quirks.has(Quirk::kPagedOptionSwallowed)) return paged.error();
      if (paged) return without_fp16(std::move(paged));
    }
    if (tensor) return tensor_caches(inner_.tensor, setup, wanted, slot);
    return without_fp16(contiguous_caches(inner_.contiguous, setup, wanted, slot));
  }
  Result<std::unique_ptr<CacheSource>> without_fp16(Result<std::unique_ptr<CacheSource>> caches) {
    if (caches && config.kv_dtype == "fp16" && !quirks.has(Quirk::kFp16Ignored))
      return fail(Code::kNotSupported, "fp16");
    return caches;
  }

  void begin(std::optional<std::int64_t> cancel_after) {
    slot.set(probe());
    CaseParts::steps.clear();
    countdown = Countdown(cancel_after);
    made_->model.watch([this] { countdown.forward_ended(); });
    made_->tokenizer.watch();
  }
  template <class Returns>
  void show_effort(Returns& returns) {
    made_->model.watch_ended();
    if (setup.profile == Profile::kDocumented) return;
    returns.forwards = made_->model.forwards();
    returns.decode_calls = made_->tokenizer.calls();
    returns.tokens = made_->tokenizer.last();
  }

  InnerSubjects inner_;
  std::unique_ptr<Made> made_;
};

constexpr auto kRows =
    joined(joined(rows_of(kQuirkRows, kGeneratorQuirks), sampling::kQuirkRows),
           joined(rows_of(provider::kQuirkRows, kInnerQuirks), block_pool::kQuirkRows));

CacheKind generator_kind(std::string_view cache, std::string_view doc,
                         std::vector<std::string_view> inner) {
  return {.contract = "generation",
          .cache = cache,
          .doc = doc,
          .operations = op_kinds(GeneratorOps()),
          .config = &type_of<GeneratorConfig>(),
          .quirks = kRows,
          .repeatable = false,
          .inner = std::move(inner)};
}

}  // namespace

const CacheKind& contiguous_kind() {
  static const CacheKind kKind = generator_kind(
      "contiguous", "text from prompts, a contiguous cache a call (zerfoo Generator)", stand_ins());
  return kKind;
}

const CacheKind& paged_kind() {
  static const CacheKind kKind = generator_kind(
      "paged", "text from prompts, a paged cache a call (zerfoo WithPagedKV)", {"provider.paged"});
  return kKind;
}

const CacheKind& tensor_kind() {
  static const CacheKind kKind = generator_kind(
      "tensor", "text from prompts, a tensor cache a call (an engine that uploads weights)",
      {"provider.tensor"});
  return kKind;
}

// ---- speculative decoding ----

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
       CaseParts<SpeculativeConfig>& parts)
      : draft(std::move(its_draft)),
        target(std::move(its_target)),
        tokenizer(make_tokenizer(parts.config.tokenizer)),
        generator({.draft = draft->part(),
                   .target = target->part(),
                   .tokenizer = tokenizer,
                   .choose = parts.choose},
                  parts.config.draft_len,
                  parts.config.adaptive.value_or(std::nullopt).value.value_or(true), parts.quirks) {
  }

  std::unique_ptr<Side> draft;
  std::unique_ptr<Side> target;
  WatchedTokenizer tokenizer;
  SpeculativeGenerator generator;
};

class SpeculativeSession final : public DispatchSession<SpeculativeSession, SpeculativeOps>,
                                 public CaseParts<SpeculativeConfig> {
 public:
  template <class... Arguments>
  explicit SpeculativeSession(Subject inner, Arguments&&... parts)
      : CaseParts(std::forward<Arguments>(parts)...), inner_(std::move(inner)) {}

  [[nodiscard]] std::span<const WorkStep> steps() const override {
    return CaseParts::steps.steps();
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    if (!made_) return std::nullopt;
    if (auto broken = made_->draft->caches->broken_invariant()) return broken;
    return made_->target->caches->broken_invariant();
  }

  Status operator()(const New& /*op*/) {
    slot.set(probe());
    made_.reset();
    auto draft = make_side(config.draft, "draft ");
    if (!draft) return draft.error();
    auto target = make_side(config.target, "target ");
    if (!target) return target.error();
    made_ = std::make_unique<Pair>(std::move(*draft), std::move(*target), *this);
    return {};
  }
  Answer<SpeculativeGenerate::Returns> operator()(const SpeculativeGenerate& op) {
    if (!made_) return {no_generator()};
    slot.set(probe());
    const bool by_target = op.cancel_after_target_forward.has_value();
    countdown = Countdown(by_target ? op.cancel_after_target_forward : op.cancel_after_forward);
    made_->draft->model.watch([this, by_target] {
      if (!by_target) countdown.forward_ended();
    });
    made_->target->model.watch([this] { countdown.forward_ended(); });
    made_->tokenizer.watch();
    CaseParts::steps.clear();
    auto answer = answer_of<SpeculativeGenerate::Returns>(
        made_->generator.generate({op.prompt, op.sampling}, countdown.context()));
    made_->draft->model.watch_ended();
    made_->target->model.watch_ended();
    if (setup.profile == Profile::kDocumented) return answer;
    answer.returns.draft_forwards = made_->draft->model.forwards();
    answer.returns.target_forwards = made_->target->model.forwards();
    answer.returns.decode_calls = made_->tokenizer.calls();
    answer.returns.tokens = made_->tokenizer.last();
    return answer;
  }
  Result<Verify::Returns> operator()(const Verify& op) {
    const Ids draft = op.draft.value.value_or(Ids());
    const Ids stop = op.stop.value.value_or(Ids());
    CaseParts::steps.clear();
    if (!op.logits.has_value()) return Verify::Returns{};
    if (op.logits->dtype != DType::kF32) return fail(Code::kPrecondition, "logits are f32");
    const auto right = quirks.has(Quirk::kFirstDraftUnverified)
                           ? verified_but_first(*op.logits, draft, stop, choose)
                           : verified(*op.logits, draft, stop, choose);
    if (!right) return right.error();
    return Verify::Returns{right->accepted, right->bonus};
  }

 private:
  Result<std::unique_ptr<Side>> make_side(const SpeculativeSide& side, std::string_view who) {
    auto model = make_model(side.model);
    if (!model) return model.error();
    const CacheSizes wanted{.num_layers = side.generator.num_layers,
                            .max_seq_len = side.generator.max_seq_len,
                            .dim = side.model.dim};
    auto caches = contiguous_caches(inner_, setup, wanted, slot);
    if (!caches) return caches.error();
    return std::make_unique<Side>(Side{WatchedModel(std::move(*model), CaseParts::steps, who),
                                       std::move(*caches), side.generator});
  }

  Subject inner_;
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

Subject make_generator_subject(const CacheKind& kind, const std::string& variant,
                               const std::string& doc, const sampling::MakeSampler& make_sampler,
                               const InnerSubjects& inner) {
  Subject subject{
      .kind = &kind,
      .variant = variant,
      .doc = doc,
      .open = [&kind, inner, make_sampler](const Setup& setup) -> Result<std::unique_ptr<Session>> {
        // Each contract has its own; those of caches are left to their setup.
        const auto own = quirks_of<Quirk>(setup, kQuirkRows, kind.quirks);
        if (!own) return own.error();
        const auto of_sampling =
            quirks_of<sampling::Quirk>(setup, sampling::kQuirkRows, kind.quirks);
        if (!of_sampling) return of_sampling.error();
        if (&kind == &speculative_kind())
          return std::make_unique<SpeculativeSession>(inner.contiguous, make_sampler, setup, *own,
                                                      *of_sampling);
        return std::make_unique<GeneratorSession>(inner, make_sampler, setup, *own, *of_sampling);
      }};
  subject.over = [&kind, variant, doc, make_sampler, inner](const Subject& cache) {
    InnerSubjects other = inner;
    Subject& place = &kind == &paged_kind()    ? other.paged
                     : &kind == &tensor_kind() ? other.tensor
                                               : other.contiguous;
    place = cache;
    return make_generator_subject(kind, variant, doc, make_sampler, other);
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
KVO_DEFINE_OPERATIONS(KVO_GENERATION_OPERATIONS)
KVO_DEFINE_OPERATIONS(KVO_SPECULATIVE_OPERATIONS)
KVO_DEFINE_OPERATIONS(KVO_TRACKER_OPERATIONS)
}  // namespace kvo
