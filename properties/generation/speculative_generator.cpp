// Random scripts for speculative decoding, and for the draft length that adapts.
#include <algorithm>
#include <memory>
#include <utility>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "properties/generation/draws.hpp"
#include "reference/generation/operations.hpp"
#include "reference/generation/speculative_operations.hpp"

namespace kvo::generation {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(DraftLabel, std::uint8_t, kText, kNoText, kLongText, kFull,
                              kCancelled, kEmptyPrompt, kBadPrompt, kUndecodable, kRefused,
                              kVerifiedAll, kVerifiedSome, kNothingToVerify,
                              kBeyondAHundredPositions, kFiveLayers, kDraftBeyondTen)

class DraftScript final : public ScriptGenerator<DraftScript, SpeculativeOps, DraftLabel> {
  using S = DraftScript;
  using Label = DraftLabel;

 public:
  DraftScript(const CaseTerms& terms, RequestTerms requests, const SpeculativeConfig& config)
      : ScriptGenerator(terms),
        terms_(std::move(requests)),
        target_(config.target.model),
        draft_len_(config.draft_len) {
    plan(New{});
  }

  // Steps.
  Op generate() {
    Request request = drawn_request(draw(), terms_);
    // A token costs the forwards of both models.
    spend(2 * cost_of(request, target_));
    SpeculativeGenerate op{std::move(request.prompt), std::move(request.sampling)};
    if (draw().percent(10)) op.cancel_after_target_forward = draw().between(0, 4);
    if (draw().percent(4)) op.cancel_after_forward = draw().between(0, 8);
    return Op::of(std::move(op));
  }
  Op verify() {
    const std::int64_t vocab = draw().between(1, 3);
    Verify op;
    if (draw().percent(92)) {
      op.logits = make_tensor({1, draw().between(0, 5), vocab});
      for (float& cell : op.logits.value->floats())
        cell = draw().one_of<float>({0, 1, 2, __builtin_nanf("")});
    }
    Ids draft;
    for (std::int64_t more = draw().between(0, 4); more > 0; --more)
      draft.push_back(draw().between(0, vocab));
    op.draft = std::move(draft);
    if (draw().percent(50)) op.stop = Ids{draw().between(0, vocab)};
    return Op::of(std::move(op));
  }
  Op again() { return Op::of(New{}); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {12, "generate", &S::generate, true},
      {4, "verify", &S::verify},
      {1, "new", &S::again},
  });

  // What became of an operation.
  void saw(const New& /*op*/, const Observation& /*seen*/) {}
  void saw(const SpeculativeGenerate& op, const Observation& seen) {
    if (op.cancel_after_forward || op.cancel_after_target_forward) reach(Label::kCancelled);
    if (seen.error) {
      if (seen.error->code == Code::kFull) reach(Label::kFull);
      if (seen.error->code == Code::kNotSupported) reach(Label::kRefused);
      if (seen.error->reason == "prompt_empty") reach(Label::kEmptyPrompt);
      if (seen.error->reason == "encode") reach(Label::kBadPrompt);
      if (seen.error->reason == "decode") reach(Label::kUndecodable);
      return;
    }
    constexpr std::size_t kManyBytes = 16;
    const std::string& text = *seen.as<SpeculativeGenerate::Returns>().text;
    reach(text.empty() ? Label::kNoText : Label::kText);
    if (text.size() > kManyBytes) reach(Label::kLongText);
    if (std::ranges::count(op.prompt, ' ') >= 100) reach(Label::kBeyondAHundredPositions);
    if (target_.layers >= 5) reach(Label::kFiveLayers);
    if (draft_len_ > 10 && text.size() > kManyBytes) reach(Label::kDraftBeyondTen);
  }
  void saw(const Verify& op, const Observation& seen) {
    if (seen.error) return;
    const auto& right = seen.as<Verify::Returns>();
    if (right.accepted.empty() && right.bonus < 0) reach(Label::kNothingToVerify);
    if (right.accepted.size() < 2) return;
    reach(right.accepted.size() == op.draft->size() ? Label::kVerifiedAll : Label::kVerifiedSome);
  }

 private:
  RequestTerms terms_;
  ModelConfig target_;
  std::int64_t draft_len_;
};

GeneratedCase make_draft_case(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  const bool bytes = draw.percent(8);
  SpeculativeConfig config;
  config.target.model = drawn_model(draw, bytes, terms.scale);
  config.target.generator = drawn_sizes(draw, config.target.model, terms.scale);
  config.draft = config.target;
  if (draw.percent(60)) {
    config.draft.model = drawn_model(draw, bytes, terms.scale);
    config.draft.generator = drawn_sizes(draw, config.draft.model, terms.scale);
    if (draw.percent(80)) config.draft.generator.max_seq_len = config.target.generator.max_seq_len;
  }
  config.tokenizer = drawn_tokenizer(draw, config.target.model.vocab, bytes);
  config.draft_len = draw.percent(8)
                         ? draw.one_of<std::int64_t>({0, -3, 12, std::int64_t{1} << 31U})
                         : draw.between(1, 6);
  if (terms.scale == Scale::kLarge && draw.percent(30)) config.draft_len = draw.edge(7, 65);
  if (draw.percent(60)) config.adaptive.emplace(draw.percent(50));
  RequestTerms request{.tokenizer = config.tokenizer,
                       .vocab = config.target.model.vocab,
                       .greedy = true,
                       .large = terms.scale == Scale::kLarge};
  auto script = std::make_unique<DraftScript>(terms, std::move(request), config);
  return {.setup = {.profile = terms.profile, .config = Record::of(std::move(config))},
          .ops = std::move(script)};
}

BOOST_DEFINE_FIXED_ENUM_CLASS(TrackerLabel, std::uint8_t, kGrown, kShrunk, kAtMost, kAtLeast,
                              kNoTracker, kClamped, kCountedBeyondTwoBytes)

class TrackerScript final : public ScriptGenerator<TrackerScript, TrackerOps, TrackerLabel> {
  using S = TrackerScript;
  using Label = TrackerLabel;

 public:
  explicit TrackerScript(const CaseTerms& terms) : ScriptGenerator(terms) {
    if (!draw().percent(5)) plan(fresh());
  }

  // Steps.
  Op record() {
    const std::int64_t proposed =
        draw().percent(95) ? draw().between(0, 9) : std::int64_t{1} << 31U;
    const std::int64_t accepted =
        favours_ ? proposed - draw().between(0, 1) : draw().between(-1, proposed / 2);
    if (draw().percent(4)) favours_ = !favours_;
    return Op::of(
        RecordOutcomes{draw().percent(80) ? accepted : draw().between(0, proposed), proposed});
  }
  // In a long life hardly ever, else no tracker would grow old.
  Op again() { return is_long() && draw().percent(97) ? record() : fresh(); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {30, "record", &S::record, true},
      {1, "new", &S::again},
  });

  // What became of an operation.
  void saw(const NewTracker& op, const Observation& seen) {
    if (seen.error) return;
    made_ = op;
    current_ = seen.as<Tracked>().current;
    if (current_ != op.initial) reach(Label::kClamped);
  }
  void saw(const RecordOutcomes& /*op*/, const Observation& seen) {
    if (seen.error) return reach(Label::kNoTracker);
    const std::int64_t now = seen.as<Tracked>().current;
    if (now > current_) reach(Label::kGrown);
    if (now < current_) reach(Label::kShrunk);
    if (now == made_.max) reach(Label::kAtMost);
    if (now == made_.min) reach(Label::kAtLeast);
    current_ = now;
  }

 private:
  Op fresh() {
    favours_ = draw().percent(50);
    return Op::of(NewTracker{draw().between(-2, 12), draw().between(0, 3), draw().between(3, 9),
                             draw().percent(5) ? draw().one_of<std::int64_t>({-1, 0, 1, 1 << 30})
                                               : draw().between(2, 40)});
  }

  bool favours_ = true;
  NewTracker made_;
  std::int64_t current_ = 0;
};

}  // namespace

kvo::Generator speculative_generator() {
  return script_generator<DraftLabel>(speculative_kind(), make_draft_case, {},
                                      {DraftLabel::kRefused});
}

kvo::Generator adaptive_generator() {
  return script_generator<TrackerLabel>(adaptive_kind(), script_case<TrackerScript>, {}, {});
}

}  // namespace kvo::generation
