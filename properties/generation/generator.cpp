// Random scripts for the three kinds of generators: requests with every kind of bad input.
#include "properties/campaign/generator.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/generation/generator.hpp"
#include "reference/generation/operations.hpp"
#include "reference/generation/options.hpp"
#include "reference/generation/speculative_operations.hpp"

namespace kvo::generation {
namespace {

/// What requests of a case are drawn by.
struct RequestTerms {
  TokenizerConfig tokenizer;
  std::int64_t vocab = 1;
  bool bounded = true;  ///< by positions: then any number of tokens may be asked for
  bool greedy = false;  ///< always
  bool large = false;   ///< prompts and texts of hundreds of tokens, now and then
};

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

/// A model; mostly one whose tokens hang on every row of the cache.
ModelConfig drawn_model(Draw& draw, bool bytes, Scale scale = Scale::kSmall) {
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

/// A tokenizer for a model's vocabulary, now and then with a piece too few.
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

/// Sizes that fit the model; now and then they do not.
GeneratorSizes drawn_sizes(Draw& draw, const ModelConfig& model, Scale scale = Scale::kSmall) {
  GeneratorSizes sizes{.num_layers = model.layers,
                       .max_seq_len = draw.percent(6) ? draw.between(0, 2) : draw.between(8, 44),
                       .bos = draw.one_of<std::int64_t>({0, 0, -1, 1, 2}),
                       .eos = draw.one_of<std::int64_t>({999, 999, 0, -1, 1}),
                       .vocab_size = model.vocab};
  if (scale == Scale::kLarge && draw.percent(60)) sizes.max_seq_len = draw.edge(44, 513);
  if (draw.percent(3)) sizes.num_layers += draw.one_of<std::int64_t>({-1, 1});
  return sizes;
}

/// What a request costs at most in ScriptGenerator::spend, where its model has such sizes.
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
  void observe(const SpeculativeGenerate& op, const Observation& seen) {
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
  void observe(const Verify& op, const Observation& seen) {
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
  void observe(const NewTracker& op, const Observation& seen) {
    if (seen.error) return;
    made_ = op;
    current_ = seen.as<Tracked>().current;
    if (current_ != op.initial) reach(Label::kClamped);
  }
  void observe(const RecordOutcomes& /*op*/, const Observation& seen) {
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

kvo::Generator speculative_generator() {
  return script_generator<DraftLabel>(speculative_kind(), make_draft_case, {},
                                      {DraftLabel::kRefused});
}

kvo::Generator adaptive_generator() {
  return script_generator<TrackerLabel>(adaptive_kind(), script_case<TrackerScript>, {}, {});
}

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(TextLabel, std::uint8_t, kText, kNoText, kFull, kExhausted,
                              kCancelled, kStreamFailed, kEmptyPrompt, kBadPrompt, kUndecodable,
                              kModelFailed, kBadLogits, kTooFewLayers, kSeveralEvents, kDrawn,
                              kMixedBatch, kWrongStreams, kPoolLow, kPoolWhole, kNoPool, kRefused,
                              kVocabularyOfOne, kMany, kChunkedPrompt, kSharedPrefix,
                              kBeyondAHundredPositions, kTextOfAHundredBytes, kFiveLayers,
                              kFiveHeads, kBeyondAHundredTokens)

class TextScript final : public ScriptGenerator<TextScript, GeneratorOps, TextLabel> {
  using S = TextScript;
  using Label = TextLabel;

 public:
  TextScript(const CaseTerms& terms, RequestTerms requests, ModelConfig model,
             PrefillOption prefill)
      : ScriptGenerator(terms),
        terms_(std::move(requests)),
        model_(std::move(model)),
        prefill_(prefill) {
    plan(New{});
  }

  // Steps.
  Op generate() {
    Request request = this->request();
    return Op::of(Generate{std::move(request.prompt), std::move(request.sampling), cancel()});
  }
  Op generate_stream() {
    Request request = this->request();
    GenerateStream op{std::move(request.prompt), std::move(request.sampling), cancel()};
    if (draw().percent(10)) op.cancel_at_event = draw().between(0, 5);
    if (draw().percent(12)) op.fail_at_event = draw().between(0, 5);
    return Op::of(std::move(op));
  }
  Op batch() { return Op::of(BatchGenerate{requests()}); }
  Op batch_stream() {
    BatchGenerateStream op{requests()};
    op.streams = std::ssize(op.requests);
    if (draw().percent(20)) op.streams += draw().one_of<std::int64_t>({-1, 1, 2});
    op.streams = std::max<std::int64_t>(op.streams, 0);
    return Op::of(std::move(op));
  }
  Op available() { return Op::of(PoolAvailable{}); }
  Op drain() { return Op::of(PoolDrain{draw().between(0, 5)}); }
  Op again() { return Op::of(New{}); }
  // A text that is cancelled, and the same request again.
  Op cancelled() {
    again_ = request();
    Generate op{again_.prompt, again_.sampling};
    op.cancel_after_forward = draw().between(0, 3);
    spend(cost_of(again_, model_));
    return Op::of(std::move(op));
  }
  Op repeated() {
    spend(cost_of(again_, model_));
    return Op::of(Generate{again_.prompt, again_.sampling});
  }

  static const CacheKind& order_kind() { return contiguous_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::cancelled>("cancelled"),
        order_word<&S::repeated>("repeated"),
    });
    return kWords;
  }
  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {12, "generate", &S::generate, true},
      {8, "stream", &S::generate_stream},
      {3, "batch", &S::batch},
      {3, "batch stream", &S::batch_stream},
      {3, "available", &S::available},
      {3, "drain", &S::drain},
      {1, "new", &S::again},
  });

  // What became of an operation.
  void observe(const New& /*op*/, const Observation& seen) {
    if (seen.error) reach(Label::kRefused);
    if (terms_.vocab == 1) reach(Label::kVocabularyOfOne);
  }
  void observe(const Generate& op, const Observation& seen) {
    told(seen.error);
    if (seen.error) return;
    const std::string& text = *seen.as<Generate::Returns>().text;
    reach(text.empty() ? Label::kNoText : Label::kText);
    if (op.sampling.temperature > 0) reach(Label::kDrawn);
    constexpr std::size_t kManyBytes = 16;
    constexpr std::size_t kHundred = 100;
    if (text.size() > kManyBytes) reach(Label::kMany);
    if (text.size() > kHundred) reach(Label::kTextOfAHundredBytes);
    if (static_cast<std::size_t>(std::ranges::count(op.prompt, ' ')) >= kHundred)
      reach(Label::kBeyondAHundredPositions);
    if (model_.layers >= 5) reach(Label::kFiveLayers);
    if (model_.kind == ModelKind::kAttention && model_.heads.value_or(1) >= 5)
      reach(Label::kFiveHeads);
    if (model_.vocab > static_cast<std::int64_t>(kHundred)) reach(Label::kBeyondAHundredTokens);
    if (op.cancel_after_forward) reach(Label::kCancelled);
    if (prefill_.chunk == 1 && op.prompt.find(' ') != std::string::npos)
      reach(Label::kChunkedPrompt);
    if (prefill_.keep_prefix && shares_) reach(Label::kSharedPrefix);
  }
  void observe(const GenerateStream& op, const Observation& seen) {
    told(seen.error);
    if (op.cancel_after_forward || op.cancel_at_event) reach(Label::kCancelled);
    if (seen.returns && seen.as<GenerateStream::Returns>().events.size() > 2)
      reach(Label::kSeveralEvents);
  }
  void observe(const BatchGenerate& /*op*/, const Observation& seen) { batched(seen); }
  void observe(const BatchGenerateStream& op, const Observation& seen) {
    batched(seen);
    if (op.streams != std::ssize(op.requests)) reach(Label::kWrongStreams);
  }
  void observe(const PoolAvailable& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const auto& pool = seen.as<PoolAvailable::Returns>();
    if (!pool.n.has_value()) return reach(Label::kNoPool);
    constexpr std::int64_t kLow = 3;
    if (*pool.n < kLow) reach(Label::kPoolLow);
    if (*pool.n == *pool.cap) reach(Label::kPoolWhole);
  }

 private:
  /// Where prefixes are kept, prompts often begin as the one before.
  Request request() {
    Request drawn = drawn_request(draw(), terms_);
    shares_ = prefill_.keep_prefix && draw().percent(60) && last_.find(' ') != std::string::npos;
    if (shares_) {
      const std::size_t blank = last_.find(' ', draw().below(last_.rfind(' ') + 1));
      drawn.prompt = last_.substr(0, blank) + " " + drawn.prompt;
    }
    last_ = drawn.prompt;
    spend(cost_of(drawn, model_));
    return drawn;
  }
  std::optional<std::int64_t> cancel() {
    if (draw().percent(88)) return std::nullopt;
    return draw().between(0, 6);
  }
  std::vector<Request> requests() {
    std::vector<Request> all;
    for (std::int64_t count = draw().between(0, 3); count > 0; --count) all.push_back(request());
    return all;
  }
  void told(const auto& error) {
    if (!error) return;
    if (error->code == Code::kFull) reach(Label::kFull);
    if (error->code == Code::kExhausted) reach(Label::kExhausted);
    if (error->code == Code::kBadShape) reach(Label::kBadLogits);
    if (error->code == Code::kOutOfRange) reach(Label::kTooFewLayers);
    if (error->reason == "canceled") reach(Label::kCancelled);
    if (error->reason == "stream") reach(Label::kStreamFailed);
    if (error->reason == "prompt_empty") reach(Label::kEmptyPrompt);
    if (error->reason == "encode") reach(Label::kBadPrompt);
    if (error->reason == "decode") reach(Label::kUndecodable);
    if (error->reason == "model") reach(Label::kModelFailed);
  }
  void batched(const Observation& seen) {
    if (!seen.returns || seen.error) return;
    const auto& results = seen.as<BatchReturns>().results;
    const auto failed = std::ranges::count_if(
        results, [](const BatchResult& result) { return result.error.has_value(); });
    if (failed > 0 && failed < std::ssize(results)) reach(Label::kMixedBatch);
  }

  RequestTerms terms_;
  ModelConfig model_;
  PrefillOption prefill_;
  Request again_ = {};     ///< that was cancelled
  std::string last_ = {};  ///< prompt
  bool shares_ = false;    ///< the last prompt begins as the one before it
};

GeneratedCase make_text_case(const CacheKind& kind, const CaseTerms& terms) {
  Draw draw(~terms.seed);
  const bool bytes = draw.percent(12);
  GeneratorConfig config;
  config.model = drawn_model(draw, bytes, terms.scale);
  config.tokenizer = drawn_tokenizer(draw, config.model.vocab, bytes);
  config.generator = drawn_sizes(draw, config.model, terms.scale);
  const bool paged = &kind == &paged_kind();
  if (&kind == &tensor_kind()) config.engine = Engine::kUploader;
  if (draw.percent(5)) config.kv_dtype = "fp16";
  if (paged && !draw.percent(6)) {
    config.paged = {config.model.dim, 1};
    if (draw.percent(5)) config.paged.head_dim += 1;
    if (draw.percent(5)) config.paged.head_dim = std::int64_t{1} << 20U;
  }
  if (draw.percent(35))
    config.prefill = {.chunk = draw.one_of<std::int64_t>({0, 0, 1, 2, 5}),
                      .keep_prefix = draw.percent(70)};
  const PrefillOption prefill = config.prefill.value_or(PrefillOption());
  RequestTerms request{.tokenizer = config.tokenizer,
                       .vocab = config.model.vocab,
                       .bounded = !paged,
                       .large = terms.scale == Scale::kLarge};
  const ModelConfig model = config.model;
  return {.setup = {.profile = terms.profile, .config = Record::of(std::move(config))},
          .ops = std::make_unique<TextScript>(terms, std::move(request), model, prefill)};
}

using Others = std::initializer_list<TextLabel>;

kvo::Generator text_generator(const CacheKind& kind, Others not_original, Others not_documented) {
  return with_orders<TextScript>(
      {.kind = &kind,
       .make = [&kind](const CaseTerms& terms) { return make_text_case(kind, terms); },
       .original_labels = label_texts_but(not_original),
       .documented_labels = label_texts_but(not_documented)});
}

}  // namespace

std::vector<kvo::Generator> generators() {
  using L = TextLabel;
  return {
      text_generator(contiguous_kind(), {L::kExhausted, L::kPoolLow, L::kPoolWhole, L::kRefused},
                     {L::kExhausted, L::kPoolLow, L::kPoolWhole}),
      text_generator(paged_kind(), {L::kFull, L::kRefused}, {L::kFull}),
      text_generator(tensor_kind(), {L::kExhausted, L::kPoolLow, L::kPoolWhole, L::kRefused},
                     {L::kExhausted, L::kPoolLow, L::kPoolWhole, L::kRefused}),
      speculative_generator(),
      adaptive_generator(),
  };
}

}  // namespace kvo::generation
