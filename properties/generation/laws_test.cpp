// Laws of contract `generation` over every cache.
#include <memory>
#include <string>
#include <vector>

#include "properties/campaign/kill.hpp"
#include "properties/campaign/rules_case.hpp"
#include "properties/contract_parts.hpp"
#include "properties/contracts.hpp"
#include "properties/generation/recompute.hpp"
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

// A model whose tokens depend on all rows that the cache returns.
ModelConfig attentive(std::int64_t salt) {
  return {
      .kind = ModelKind::kAttention, .layers = 2, .dim = 4, .vocab = 10, .salt = salt, .heads = 2};
}
GeneratorConfig attending(std::int64_t salt) {
  return {.generator = {.num_layers = 2, .max_seq_len = 40, .bos = 2, .eos = 999},
          .kv_dtype = "",
          .model = attentive(salt),
          .paged = {},
          .tokenizer = letters()};
}

SamplingConfig greedy(std::int64_t most, std::vector<std::string> stops = {}) {
  return {.temperature = 0, .max_new_tokens = most, .stop_strings = std::move(stops)};
}

std::string text_of(RulesCase& generator, const std::string& prompt, SamplingConfig sampling) {
  return generator.values(Generate{prompt, std::move(sampling)}).text.value_or("(none)");
}

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

// Logits after ids that were fed to a cache in chunks.
std::vector<float> after_chunks(const Subject& inner, const Ids& ids, std::int64_t chunk) {
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
      const std::vector<float> at_once = after_chunks(*inner, ids, std::ssize(ids));
      for (const std::int64_t chunk : {1, 2, 7, 16, 20})
        EXPECT_EQ(after_chunks(*inner, ids, chunk), at_once) << inner->name() << " by " << chunk;
      ++caches;
    }
  }
  EXPECT_GE(caches, 10U);
}

// After a call that ends early the cache holds the rows of its tokens, no others.
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

// Tokens after context shifts, at their new positions. The next token depends on all of them. With
// one layer no row depends on the tokens that were removed.
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

// Profile documented compares texts, pieces and errors alone.
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

}  // namespace
}  // namespace kvo::generation
