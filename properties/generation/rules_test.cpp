// Single rules of contract `generation`, in both profiles, and its laws over every cache.
#include <memory>
#include <string>
#include <vector>

#include "properties/campaign/kill.hpp"
#include "properties/campaign/rules_case.hpp"
#include "properties/contract_parts.hpp"
#include "properties/contracts.hpp"
#include "properties/generation/recompute.hpp"
#include "reference/generation/draft_tracker.hpp"
#include "reference/generation/inner_caches.hpp"
#include "reference/generation/operations.hpp"
#include "reference/generation/speculative_operations.hpp"

namespace kvo::generation {
namespace {

constexpr std::array kProfiles{Profile::kOriginal, Profile::kDocumented};

const TokenizerConfig& letters() {
  static const TokenizerConfig kLetters{
      .kind = TokenizerKind::kIds,
      .pieces = {"<0>", "<1>", "a", "b", "c", "d", "\u00e9", "ab", "bc", "-"}};
  return kLetters;
}

// A model that says these tokens, by position.
GeneratorConfig speaking(Ids script) {
  return {.generator = {.num_layers = 1, .max_seq_len = 12, .eos = 1},
          .kv_dtype = "",
          .model = {.kind = ModelKind::kScript,
                    .layers = 1,
                    .dim = 2,
                    .vocab = 10,
                    .script = std::move(script)},
          .paged = {},
          .tokenizer = letters()};
}

// A model whose tokens hang on all that the cache shows.
ModelConfig attentive(std::int64_t salt) {
  return {
      .kind = ModelKind::kAttention, .layers = 2, .dim = 4, .vocab = 10, .salt = salt, .heads = 2};
}
GeneratorConfig attending(std::int64_t salt) {
  GeneratorConfig config = speaking({});
  config.model = attentive(salt);
  config.generator = {.num_layers = 2, .max_seq_len = 40, .bos = 2, .eos = 999};
  return config;
}

SamplingConfig greedy(std::int64_t most, std::vector<std::string> stops = {}) {
  return {.temperature = 0, .max_new_tokens = most, .stop_strings = std::move(stops)};
}

// The reference with the generator of a config.
RulesCase made(const GeneratorConfig& config, Profile profile,
               const CacheKind& kind = contiguous_kind()) {
  RulesCase made(contracts().reference_of(kind), profile, Record::of(config));
  EXPECT_EQ(made.code(New{}), "ok");
  return made;
}

std::string text_of(RulesCase& generator, const std::string& prompt, SamplingConfig sampling) {
  return generator.values(Generate{prompt, std::move(sampling)}).text.value_or("(none)");
}

// What a stream is sent, its pieces apart.
std::string pieces(RulesCase& generator, const GenerateStream& op) {
  std::string all;
  const Observation seen = generator.run(op);
  for (const Event& event : seen.as<GenerateStream::Returns>().events)
    all += event.done ? "." : event.token + "|";
  return seen.error ? all + " " + seen.error->code_text() : all;
}

TEST(GenerationRules, MaxNewTokensOfNothingIs256ZF77) {
  for (const Profile profile : kProfiles) {
    GeneratorConfig config = speaking({2});
    config.generator.max_seq_len = 300;
    RulesCase generator = made(config, profile);
    EXPECT_EQ(text_of(generator, "2", greedy(0)), std::string(256, 'a'));
  }
}

TEST(GenerationRules, AnUnsetEosIdStopsInTheOriginalZF77) {
  for (const Profile profile : kProfiles) {
    GeneratorConfig config = speaking({2, 0, 3});
    config.generator.eos = 0;
    RulesCase generator = made(config, profile);
    EXPECT_EQ(text_of(generator, "2", greedy(3)), profile == Profile::kOriginal ? "a" : "a<0>b");
  }
}

TEST(GenerationRules, AFullCacheLosesTheTextInTheOriginalZF77) {
  for (const Profile profile : kProfiles) {
    GeneratorConfig config = speaking({2});
    config.generator.max_seq_len = 4;
    RulesCase generator = made(config, profile);
    const bool original = profile == Profile::kOriginal;
    const Observation seen = generator.run(Generate{"3 3", greedy(9)});
    EXPECT_EQ(seen.failed_with(Code::kFull), original);
    if (!original) {
      EXPECT_EQ(*seen.as<Generate::Returns>().text, "aaa") << "the last one is never fed";
    }
    EXPECT_EQ(generator.code(Generate{"3 3 3 3 3", greedy(9)}), "full") << "a prompt is never cut";
  }
}

TEST(GenerationRules, CancellationZF78) {
  for (const Profile profile : kProfiles) {
    RulesCase generator = made(speaking({2, 3, 4, 5}), profile);
    const bool original = profile == Profile::kOriginal;
    for (const std::int64_t after : {0, 1, 2}) {
      const Observation seen = generator.run(Generate{"2", greedy(9), after});
      EXPECT_EQ(seen.error.has_value(), !original);
      if (original) {
        EXPECT_EQ(seen.as<Generate::Returns>().text->size(), after < 2 ? 1U : 2U);
      } else {
        EXPECT_EQ(seen.error->code_text(), "other:canceled");
      }
    }
    EXPECT_EQ(pieces(generator, {"2", greedy(9), 2}), original ? "a|b|." : "a|b| other:canceled");
  }
}

TEST(GenerationRules, WhichStopStringWinsZF79) {
  for (const Profile profile : kProfiles) {
    RulesCase generator = made(speaking({2, 3, 7, 4}), profile);
    const bool original = profile == Profile::kOriginal;
    EXPECT_EQ(text_of(generator, "2", greedy(4, {"ba", "ab"})), original ? "" : "");
    EXPECT_EQ(text_of(generator, "2", greedy(4, {"bab", "aba"})), original ? "a" : "");
    EXPECT_EQ(text_of(generator, "2", greedy(4, {"", "c"})), original ? "" : "abab");
  }
}

TEST(GenerationRules, AStreamSendsWhatIsReturnedZF84) {
  for (const Profile profile : kProfiles) {
    const bool original = profile == Profile::kOriginal;
    RulesCase generator = made(speaking({2, 3, 4, 5}), profile);
    EXPECT_EQ(pieces(generator, {"2", greedy(4, {"bcd"})}), original ? "a|b|c|." : "a|.");
    EXPECT_EQ(pieces(generator, {"2", greedy(4, {"bcx"})}), original ? "a|b|c|d|." : "a|bcd|.");
    GenerateStream failing{"2", greedy(4)};
    failing.fail_at_event = 1;
    EXPECT_EQ(pieces(generator, failing), "a|b| other:stream");
    failing.fail_at_event = 4;
    EXPECT_EQ(pieces(generator, failing), "a|b|c|d|. other:stream") << "the last one, too";
  }
}

TEST(GenerationRules, CharactersAreKeptWholeZF87) {
  GeneratorConfig config = speaking({0x61, 0xe2, 0x82, 0xac, 0xc3});
  config.model.vocab = 256;
  config.tokenizer = {.kind = TokenizerKind::kBytes, .pieces = {}};
  RulesCase generator = made(config, Profile::kDocumented);
  EXPECT_EQ(pieces(generator, {"x", greedy(5)}), "a|\u20ac|<0xc3>|.");
}

TEST(GenerationRules, AWrongNumberOfStreamsZF89) {
  for (const Profile profile : kProfiles) {
    RulesCase generator = made(speaking({2, 3}), profile);
    const std::vector<Request> two{{"2", greedy(2)}, {"3 3", greedy(1)}};
    const auto one = generator.values(BatchGenerateStream{two, 1});
    ASSERT_EQ(one.results.size(), 2U);
    EXPECT_EQ(*one.results[1].error,
              profile == Profile::kOriginal ? "other:canceled" : "bad_shape");
    const auto both = generator.values(BatchGenerateStream{two, 2});
    EXPECT_EQ(both.results[0].events->size(), 3U);
    EXPECT_FALSE(both.results[1].error.has_value());
  }
}

TEST(GenerationRules, BlocksComeBackZF76) {
  for (const Profile profile : kProfiles) {
    GeneratorConfig config = attending(3);
    config.paged = {4, 1};
    RulesCase generator = made(config, profile, paged_kind());
    const bool original = profile == Profile::kOriginal;
    (void)generator.values(PoolDrain{2});
    const SamplingConfig most = greedy(20);
    const std::string text = text_of(generator, "2 3", most);
    EXPECT_EQ(*generator.values(PoolAvailable{}).n, original ? 0 : 2);
    EXPECT_EQ(generator.code(Generate{"2 3", most}), original ? "exhausted" : "ok");
    EXPECT_EQ(generator.code(Generate{"2 3", greedy(40)}), "exhausted");
    EXPECT_EQ(*generator.values(PoolAvailable{}).n, original ? 0 : 2);
    EXPECT_EQ(text, plain_text({.model = config.model,
                                .tokenizer = config.tokenizer,
                                .bos = 2,
                                .eos = 999,
                                .most_positions = {}},
                               {"2 3", most}));
  }
}

TEST(GenerationRules, OptionsThatCannotBeHonouredZF75) {
  for (const Profile profile : kProfiles) {
    const bool original = profile == Profile::kOriginal;
    GeneratorConfig config = speaking({2});
    config.paged = {1 << 20, 1};
    RulesCase small(contracts().reference_of(paged_kind()), profile, Record::of(config));
    EXPECT_EQ(small.code(New{}), original ? "ok" : "other:budget_too_small");
    config = speaking({2});
    config.kv_dtype = "fp16";
    RulesCase half(contracts().reference_of(contiguous_kind()), profile, Record::of(config));
    EXPECT_EQ(half.code(New{}), original ? "ok" : "not_supported");
  }
}

// ---- Laws ----

const std::vector<std::string>& prompts() {
  static const std::vector<std::string> kPrompts{"2", "3 4 5", "9 8 7 6 5 4 3 2 3 4 5 6 7 8 9 2 3"};
  return kPrompts;
}

Plain plain_of(const ModelConfig& model) {
  return {.model = model, .tokenizer = letters(), .bos = 2, .eos = 999, .most_positions = 40};
}

TEST(GenerationLaws, TheTextOverAnyCacheIsTheOneWithout) {
  std::size_t caches = 0;
  for (const CacheKind* kind : {&contiguous_kind(), &paged_kind(), &tensor_kind()})
    for (const Subject* subject : contracts().subjects_of(*kind))
      for (const std::string& prompt : prompts()) {
        GeneratorConfig config = attending(7);
        if (kind == &paged_kind()) config.paged = {4, 1};
        if (kind == &tensor_kind()) config.engine = Engine::kUploader;
        RulesCase generator(*subject, Profile::kDocumented, Record::of(config));
        EXPECT_EQ(generator.code(New{}), "ok") << subject->name();
        EXPECT_EQ(text_of(generator, prompt, greedy(15)),
                  plain_text(plain_of(config.model), {prompt, greedy(15)}))
            << subject->name();
        ++caches;
      }
  EXPECT_GE(caches, 8 * prompts().size());
}

// Logits behind ids that were fed to a cache in chunks.
std::vector<float> behind_chunks(const Subject& inner, const Ids& ids, std::int64_t chunk) {
  ProbeSlot slot;
  Probe probe;
  slot.set(probe);
  const CacheSizes sizes{.num_layers = 2, .max_seq_len = 40, .dim = 4};
  const auto caches = contiguous_caches(inner, {.profile = Profile::kDocumented}, sizes, slot);
  const auto cache = (*caches)->make();
  const auto model = make_model(attentive(5));
  std::vector<float> last;
  for (std::int64_t at = 0; at < std::ssize(ids); at += chunk) {
    const std::int64_t count = std::min(chunk, std::ssize(ids) - at);
    const auto logits = (*model)->forward(
        std::span(ids).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count)),
        **cache);
    EXPECT_TRUE(logits.has_value()) << inner.name();
    if (!logits) break;
    const auto row = logits->floats().last(10);
    last.assign(row.begin(), row.end());
  }
  return last;
}

TEST(GenerationLaws, PrefillInChunksIsPrefillAtOnce) {
  const Ids ids{2, 3, 4, 5, 6, 7, 8, 9, 2, 4, 6, 8, 3, 5, 7, 9, 2, 2, 3, 3, 4};
  std::size_t caches = 0;
  for (const CacheKind* kind : contracts().kinds()) {
    if (std::ranges::find(stand_ins(), kind->name()) == stand_ins().end()) continue;
    for (const Subject* inner : contracts().subjects_of(*kind)) {
      const std::vector<float> at_once = behind_chunks(*inner, ids, std::ssize(ids));
      for (const std::int64_t chunk : {1, 2, 7, 16, 20})
        EXPECT_EQ(behind_chunks(*inner, ids, chunk), at_once) << inner->name() << " by " << chunk;
      ++caches;
    }
  }
  EXPECT_GE(caches, 10U);
}

// What a caller sees of the forwards is shown in the original only.
TEST(GenerationRules, PromptsAreFedInChunksZF77) {
  GeneratorConfig config = attending(3);
  config.prefill = {.chunk = 2};
  RulesCase generator = made(config, Profile::kOriginal);
  const auto seen = generator.values(Generate{"3 4 5 6", greedy(2)});
  ASSERT_EQ(seen.forwards->size(), 4U);
  EXPECT_EQ((*seen.forwards)[0].tokens, (Ids{2, 3}));
  EXPECT_EQ((*seen.forwards)[2].tokens, (Ids{6}));
  EXPECT_EQ((*seen.forwards)[2].past, 4);
  EXPECT_EQ(seen.text, plain_text(plain_of(attentive(3)), {"3 4 5 6", greedy(2)}));
}

TEST(GenerationRules, APrefixIsKeptWhereItIsAsked) {
  GeneratorConfig config = attending(3);
  config.prefill = {.keep_prefix = true};
  RulesCase generator = made(config, Profile::kOriginal);
  (void)generator.values(Generate{"3 4 5 6", greedy(5)});
  const auto seen = generator.values(Generate{"3 4 9", greedy(2)});
  EXPECT_EQ(seen.forwards->front().past, 3) << "BOS, 3 and 4";
  EXPECT_EQ(seen.forwards->front().tokens, (Ids{9}));
  EXPECT_EQ(seen.text, plain_text(plain_of(attentive(3)), {"3 4 9", greedy(2)}));
  const auto same = generator.values(Generate{"3 4 9", greedy(2)});
  EXPECT_EQ(same.forwards->front().tokens, (Ids{9})) << "one is fed, for its logits";
}

// What a stopped call leaves must be what its tokens say.
TEST(GenerationLaws, ACallThatEndsEarlyLeavesCacheAndTokensAgreeing) {
  for (const Profile profile : kProfiles) {
    for (const Subject* subject : contracts().subjects_of(contiguous_kind())) {
      GeneratorConfig config = attending(5);
      config.prefill = {.chunk = 3, .keep_prefix = true};
      RulesCase generator(*subject, profile, Record::of(config));
      EXPECT_EQ(generator.code(New{}), "ok");
      for (std::int64_t step = 0; step < 6; ++step) {
        (void)generator.run(Generate{"3 4 5 6 7 8", greedy(9), step});
        GenerateStream failing{"3 4 5 6 9", greedy(9)};
        failing.fail_at_event = step;
        (void)generator.run(failing);
        EXPECT_EQ(text_of(generator, "3 4 5 6 7 2", greedy(6)),
                  plain_text(plain_of(attentive(5)), {"3 4 5 6 7 2", greedy(6)}))
            << subject->name() << " at step " << step;
      }
    }
  }
}

// Tokens behind what is kept, at the places that they have after context shifts: the next token
// hangs on all of them, with a model of one layer, whose rows do not hang on what was taken out.
TEST(GenerationLaws, AContextShiftIsARecomputation) {
  constexpr std::int64_t kRoom = 16;
  constexpr std::int64_t kKept = 3;
  constexpr std::int64_t kDropped = 6;
  constexpr std::int64_t kPlaces = 4096;  // a key is token * kPlaces + position
  const auto next = [](const std::vector<std::pair<std::int64_t, std::int64_t>>& rows) {
    std::int64_t hash = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
      hash = (hash + static_cast<std::int64_t>(i + 1) * (rows[i].first + 3 * rows[i].second)) % 97;
    return hash;
  };
  std::size_t shifted = 0;
  for (const CacheKind* kind : contracts().kinds()) {
    if (std::ranges::find(stand_ins(), kind->name()) == stand_ins().end() ||
        kind->contract != "positional")
      continue;
    for (const Subject* inner : contracts().subjects_of(*kind)) {
      Probe probe;
      ProbeSlot slot;
      slot.set(probe);
      const auto store = make_store(*inner, {.profile = Profile::kDocumented},
                                    {.num_layers = 1, .max_seq_len = kRoom, .dim = 1}, slot);
      ASSERT_TRUE(store) << inner->name();
      Ids live;
      std::int64_t token = 5;
      for (int step = 0; step < 60; ++step) {
        if (std::ssize(live) == kRoom) {
          const Status done = (*store)->discard(kKept, kKept + kDropped);
          ASSERT_TRUE(done) << inner->name() << ": " << done.error().text();
          live.erase(live.begin() + kKept, live.begin() + kKept + kDropped);
          ++shifted;
        }
        const std::int64_t position = std::ssize(live);
        live.push_back(token);
        const auto k =
            tensor_of({1, 1, 1}, std::vector{static_cast<float>(token * kPlaces + position)});
        const auto v = tensor_of({1, 1, 1}, std::vector{static_cast<float>(token)});
        ASSERT_TRUE((*store)->add(0, position, k, v));
        const auto shown = (*store)->rows(0);
        ASSERT_TRUE(shown);
        std::vector<std::pair<std::int64_t, std::int64_t>> rows;
        const Tensor keys = materialize(shown->k);
        const Tensor values = materialize(shown->v);
        for (std::int64_t i = 0; i < keys.elements(); ++i)
          rows.emplace_back(
              static_cast<std::int64_t>(keys.floats()[static_cast<std::size_t>(i)]),
              static_cast<std::int64_t>(values.floats()[static_cast<std::size_t>(i)]));
        std::ranges::sort(rows, {}, [&](const auto& row) { return row.first % kPlaces; });
        std::vector<std::pair<std::int64_t, std::int64_t>> want;
        for (std::int64_t i = 0; i < std::ssize(live); ++i)
          want.emplace_back(live[static_cast<std::size_t>(i)] * kPlaces + i,
                            live[static_cast<std::size_t>(i)]);
        ASSERT_EQ(next(rows), next(want)) << inner->name() << ", step " << step;
        token = next(want);
      }
    }
  }
  EXPECT_GE(shifted, 4U * 2U * 7U) << "four kinds, reference and optimized";
}

SpeculativeConfig guessing(const ModelConfig& draft, const ModelConfig& target,
                           std::int64_t draft_len) {
  const GeneratorSizes sizes{.num_layers = 2, .max_seq_len = 40, .bos = 2, .eos = 999};
  return {.draft = {sizes, draft},
          .draft_len = draft_len,
          .target = {sizes, target},
          .tokenizer = letters()};
}

TEST(GenerationLaws, SpeculativeIsGreedyForEveryDraftZF109) {
  ModelConfig larger = attentive(2);
  larger.vocab = 30;
  ModelConfig failing = attentive(7);
  failing.fail_at = 9;
  for (const Subject* subject : contracts().subjects_of(speculative_kind()))
    for (const ModelConfig& draft : {attentive(7), attentive(1), larger, failing})
      for (const std::int64_t length : {0, 1, 2, 3, 5, 9, 100})
        for (const std::string& prompt : prompts()) {
          RulesCase generator(*subject, Profile::kDocumented,
                              Record::of(guessing(draft, attentive(7), length)));
          EXPECT_EQ(generator.code(New{}), "ok");
          EXPECT_EQ(generator.values(SpeculativeGenerate{prompt, greedy(30, {"dd-"})}).text,
                    plain_text(plain_of(attentive(7)), {prompt, greedy(30, {"dd-"})}))
              << subject->name() << ", draft length " << length;
        }
}

// In profile documented nothing but texts, pieces and errors is shown.
TEST(GenerationLaws, FaultsOfCachesShowInTheText) {
  constexpr std::uint64_t kCases = 1'000;
  const std::vector<Mutant> faulty = mutants();
  EXPECT_GE(faulty.size(), 12U);
  for (const Mutant& mutant : faulty)
    EXPECT_TRUE(find_kill(contracts(), mutant.subject, 1, kCases, Profile::kDocumented))
        << mutant.subject.name();
}

TEST(GenerationLaws, TheOriginalIsNotGreedyZF104) {
  RulesCase generator(contracts().reference_of(speculative_kind()), Profile::kOriginal,
                      Record::of(guessing(attentive(1), attentive(7), 3)));
  EXPECT_EQ(generator.code(New{}), "ok");
  EXPECT_NE(generator.values(SpeculativeGenerate{"3 4 5", greedy(12)}).text,
            plain_text(plain_of(attentive(7)), {"3 4 5", greedy(12)}));
}

TEST(GenerationRules, SamplingOfADraftIsRefusedZF100) {
  for (const Profile profile : kProfiles) {
    RulesCase generator(contracts().reference_of(speculative_kind()), profile,
                        Record::of(guessing(attentive(1), attentive(7), 3)));
    EXPECT_EQ(generator.code(New{}), "ok");
    EXPECT_EQ(generator.code(SpeculativeGenerate{"2", {.max_new_tokens = 3}}),
              profile == Profile::kOriginal ? "ok" : "not_supported");
  }
}

TEST(GenerationRules, ADraftThatIsAlwaysWrongSettlesZF112) {
  DraftTracker tracker({.initial = 4, .min = 1, .max = 8, .window = 8});
  for (int round = 0; round < 20; ++round) tracker.record(0, tracker.current());
  EXPECT_EQ(tracker.current(), 1);
  for (int round = 0; round < 20; ++round) tracker.record(1, 1);
  EXPECT_EQ(tracker.current(), 8) << "where the unseen first token counts it grows again";
}

}  // namespace
}  // namespace kvo::generation
