// What must get smaller together: operations of one layer and its count, rows and the sizes of a
// head, numbers and what they number; and that nothing gets smaller a second time.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "properties/campaign/conform.hpp"
#include "properties/campaign/kill.hpp"
#include "properties/contracts.hpp"
#include "properties/runner/run_case.hpp"
#include "properties/runner/shrinker.hpp"
#include "reference/block_pool/operations.hpp"
#include "reference/cells/operations.hpp"
#include "reference/contract/describe/difference.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/layered/cache.hpp"
#include "reference/views/operations.hpp"

namespace kvo {
namespace {

constexpr std::uint64_t kAttempts = 20'000;

bool is_same(const Record& a, const Record& b) {
  return !a || !first_difference(a.type(), a.get(), b.get());
}

bool is_same(const Script& a, const Script& b) {
  return std::ranges::equal(a, b, [](const Op& one, const Op& other) {
    return &one.kind() == &other.kind() && is_same(one.arguments(), other.arguments());
  });
}

Op rows(std::int64_t cache, std::int64_t layer, std::int64_t tokens, std::int64_t width) {
  Tagger tagger;
  auto [k, v] = tagger.pair({tokens, width});
  return Op::of(
      views::Append{.cache = cache, .layer = layer, .k = std::move(k), .v = std::move(v)});
}

Op commit(std::int64_t cache, std::int64_t n) {
  return Op::of(views::Commit{.cache = cache, .n = n});
}

// A step is whole only with rows of each layer, as wide as the config says.
bool is_whole_step(const Shrinkable& trial) {
  const auto& config = trial.config.as<views::Config>();
  std::set<std::int64_t> layers;
  bool fits = config.num_layers > 0;
  for (const Op& op : trial.script)
    if (const auto* append = op.as<views::Append>()) {
      layers.insert(append->layer);
      fits = fits && append->layer < config.num_layers && append->k.shape.size() == 2 &&
             append->k.shape == append->v.shape && append->k.elements() > 0 &&
             append->k.shape[1] == config.num_kv_heads * config.head_dim;
    }
  return fits && std::ssize(layers) == config.num_layers &&
         (!config.devices || std::ssize(*config.devices) == config.num_layers);
}

TEST(ShrinkJointly, DropsLayersAndNarrowsHeadsEverywhere) {
  views::Config config{.num_layers = 14, .num_kv_heads = 3, .head_dim = 127};
  config.devices.emplace(14, -1);
  Shrinkable trial{{}, Record::of(config)};
  for (std::int64_t layer = 0; layer < 14; ++layer) trial.script.push_back(rows(0, layer, 5, 381));
  const auto fails = [](const Shrinkable& tried) {
    return is_whole_step(tried) && tried.config.as<views::Config>().devices.has_value();
  };
  Judge judge(fails, kAttempts);
  ASSERT_TRUE(shrink_trial(trial, judge, {}));
  const auto& small = trial.config.as<views::Config>();
  EXPECT_EQ(small.num_layers, 1);
  EXPECT_EQ(small.num_kv_heads * small.head_dim, 1);
  EXPECT_EQ(small.devices->size(), 1U);
  ASSERT_EQ(trial.script.size(), 1U);
  EXPECT_EQ(trial.script[0].as<views::Append>()->k.shape, (Shape{1, 1}));
}

TEST(ShrinkJointly, AddsUpTheCountsOfRoundsThatBecomeOne) {
  Script script;
  for (int i = 0; i < 5; ++i) {
    script.push_back(rows(0, 0, 2, 1));
    script.push_back(commit(0, 2));
  }
  const Script small = shrink_script(script, [](const Script& tried) {
    std::int64_t pending = 0;
    std::int64_t committed = 0;
    for (const Op& op : tried) {
      if (const auto* append = op.as<views::Append>()) pending = append->k.shape[0];
      if (const auto* step = op.as<views::Commit>()) {
        if (step->n > pending) return false;
        committed += step->n;
        pending = 0;
      }
    }
    return committed >= 7;
  });
  ASSERT_EQ(small.size(), 2U);
  EXPECT_EQ(small[0].as<views::Append>()->k.shape[0], 7);
  EXPECT_EQ(small[1].as<views::Commit>()->n, 7);
}

TEST(ShrinkJointly, LowersTokensThatMustFitEachOther) {
  const Script script{rows(0, 0, 9, 1), commit(0, 9),
                      Op::of(views::Fork{.cache = 1, .from = 0, .tokens = 9}),
                      Op::of(views::Truncate{.cache = 1, .n = 8})};
  const Script small = shrink_script(script, [](const Script& tried) {
    if (tried.size() != 4) return false;
    const std::int64_t tokens = tried[0].as<views::Append>()->k.shape[0];
    return tried[1].as<views::Commit>()->n == tokens && tokens > 1 &&
           tried[2].as<views::Fork>()->tokens == tokens &&
           tried[3].as<views::Truncate>()->n == tokens - 1;
  });
  EXPECT_EQ(small[0].as<views::Append>()->k.shape[0], 2);
  EXPECT_EQ(small[3].as<views::Truncate>()->n, 1);
}

TEST(ShrinkJointly, ALastIndexFollowsTheSizesThatItEnds) {
  const Script script{Op::of(block_pool::New{.num_layers = 4, .block_size = 255, .head_dim = 129}),
                      Op::of(block_pool::WriteBlock{.index = 4 * 255 * 129 - 1})};
  const Script small = shrink_script(script, [](const Script& tried) {
    if (tried.size() != 2) return false;
    const auto* made = tried[0].as<block_pool::New>();
    const auto* write = tried[1].as<block_pool::WriteBlock>();
    return made->num_layers * made->block_size * made->head_dim - 1 == write->index;
  });
  const auto* made = small[0].as<block_pool::New>();
  EXPECT_EQ(made->num_layers * made->block_size * made->head_dim, 1);
}

TEST(ShrinkJointly, DropsCachesThatWereNumberedInOrder) {
  Script script;
  for (int i = 0; i < 30; ++i) script.push_back(Op::of(layered::New{1, 1, 1}));
  script.push_back(Op::of(layered::CloneFrom{.cache = 23, .source = 17}));
  const Script small = shrink_script(script, [](const Script& tried) {
    std::uint64_t made = 0;
    for (const Op& op : tried) {
      if (op.as<layered::New>() != nullptr) ++made;
      if (const auto* clone = op.as<layered::CloneFrom>())
        return clone->cache < made && clone->source < made && clone->cache != clone->source;
    }
    return false;
  });
  EXPECT_EQ(small.size(), 3U);
}

TEST(ShrinkJointly, SwapsTwoNumbersWhereTheFirstCacheWasNotNeeded) {
  // The fork of nothing makes the cache 1 that holds the rows.
  const Script script{Op::of(views::New{}), Op::of(views::Fork{.cache = 1, .from = 0, .tokens = 0}),
                      rows(1, 0, 1, 1),
                      Op::of(views::Fork{.cache = std::nullopt, .from = 1, .tokens = 1})};
  const Script small = shrink_script(script, [](const Script& tried) {
    std::set<std::int64_t> made;
    std::set<std::int64_t> filled;
    bool forked = false;
    for (const Op& op : tried) {
      if (op.as<views::New>() != nullptr) made.insert(0);
      if (const auto* append = op.as<views::Append>())
        if (made.contains(append->cache.value_or(0))) filled.insert(append->cache.value_or(0));
      if (const auto* fork = op.as<views::Fork>()) {
        if (!made.contains(fork->from)) return false;
        forked = fork->tokens > 0 && filled.contains(fork->from) && !made.contains(2) &&
                 fork->cache.value_or(0) != fork->from;
        made.insert(fork->cache.value_or(0));
      }
    }
    return forked;
  });
  ASSERT_EQ(small.size(), 3U);
  EXPECT_EQ(small[1].as<views::Append>()->cache.value_or(0), 0);
}

// The default of a query is not its simplest form.
TEST(ShrinkJointly, EndsWhereAQueryIsSimplerThanItsDefault) {
  const Script script{Op::of(cells::New{}), Op::of(cells::SeqRm{.seq = 0, .p0 = 5, .p1 = 5})};
  std::uint64_t asked = 0;
  Shrinkable trial{script};
  Judge judge(
      [&](const Shrinkable& tried) {
        ++asked;
        return tried.script.size() == 2 && tried.script.back().as<cells::SeqRm>() != nullptr;
      },
      kAttempts);
  shrink_trial(trial, judge, {Op::of(cells::SeqRm{})});
  EXPECT_EQ(trial.script.back().as<cells::SeqRm>()->p0, 0);
  EXPECT_LT(asked, 200U);
}

// 40,000 operations of 50 caches, of which one is at fault.
TEST(ShrinkJointly, ALongScriptCostsItsLengthAFewTimes) {
  constexpr std::uint64_t kCaches = 50;
  constexpr std::uint64_t kRounds = 800;
  constexpr std::uint64_t kGuilty = 31;
  Script script;
  for (std::uint64_t i = 0; i < kRounds; ++i)
    for (std::uint64_t cache = 0; cache < kCaches; ++cache)
      script.push_back(i % 2 == 0 ? Op::of(layered::Advance{cache}) : Op::of(layered::Len{cache}));
  const std::size_t length = script.size();
  std::uint64_t run = 0;
  const Script small = shrink_script(
      std::move(script),
      [&](const Script& tried) {
        run += tried.size();
        std::uint64_t advances = 0;
        for (const Op& op : tried)
          if (const auto* advance = op.as<layered::Advance>())
            advances += advance->cache == kGuilty;
        return advances >= 3 && tried.back().as<layered::Len>() != nullptr;
      },
      2'000);
  EXPECT_EQ(small.size(), 4U);
  EXPECT_LT(run, 4 * length);
}

TEST(ShrinkJointly, WhatOneMemberNamesMayTakeAllThatAnotherNames) {
  Script script;
  for (std::uint64_t i = 0; i < 300; ++i)
    script.push_back(Op::of(layered::Append{i % 3, i % 2, {}, {}}));
  script.push_back(Op::of(layered::Len{3}));
  const Script small = shrink_script(script, [](const Script& tried) {
    return !tried.empty() && tried.back().as<layered::Len>() != nullptr;
  });
  EXPECT_EQ(small.size(), 1U);
}

// A cache that writes into a block that its fork holds, too.
TEST(ShrinkJointly, AForgottenCopyOnWriteIsShownByEightOperations) {
  const Subject& subject = *contracts().find_subject("views.paged@mutant:shared_block_not_left");
  const views::Config config{.num_layers = 14,
                             .block_size = 4,
                             .num_kv_heads = 1,
                             .head_dim = 127,
                             .max_seq_len = 256,
                             .blocks = 4'000};
  Script script{Op::of(views::New{})};
  const auto all_layers = [&](std::int64_t cache, std::int64_t tokens) {
    for (std::int64_t layer = 0; layer < config.num_layers; ++layer)
      script.push_back(rows(cache, layer, tokens, config.head_dim));
    script.push_back(commit(cache, tokens));
  };
  all_layers(0, 7);
  all_layers(0, 5);
  script.push_back(Op::of(views::Fork{.cache = 1, .from = 0, .tokens = 12}));
  script.push_back(Op::of(views::Truncate{.cache = 1, .n = 9}));
  all_layers(1, 2);
  script.push_back(Op::of(views::ShowViews{.layer = 13}));
  const CasePlan plan{.kind = &views::paged_kind(),
                      .setup = {.config = Record::of(config)},
                      .baseline = &contracts().reference_of(views::paged_kind()),
                      .subjects = {&subject}};
  const Smaller smaller = smaller_case(plan, subject, script, {});
  ASSERT_TRUE(smaller.verdict.failed());
  EXPECT_LE(smaller.script.size(), 8U);
  const auto& small = smaller.plan.setup.config.as<views::Config>();
  EXPECT_EQ(small.num_layers, 1);
  EXPECT_EQ(small.head_dim, 1);
  for (const Op& op : smaller.script) {
    const auto* append = op.as<views::Append>();
    EXPECT_TRUE(append == nullptr || append->k.shape.at(1) == 1);
  }
}

class ShrinkAgain : public testing::TestWithParam<const char*> {};

TEST_P(ShrinkAgain, ChangesNothing) {
  constexpr std::uint64_t kTriedCases = 3'000;
  const Subject* subject = contracts().find_subject(GetParam());
  ASSERT_NE(subject, nullptr);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const auto kill = find_kill(contracts(), *subject, seed, kTriedCases, Profile::kOriginal);
    ASSERT_TRUE(kill.has_value()) << "seed " << seed;
    std::string text;
    for (const std::string& line : kill->result.log.value()) text += line + "\n";
    auto log = traces::LogReader::in_memory("log", text, contracts().kind_finder());
    const auto written = log.next_whole_case();
    ASSERT_TRUE(written && *written);
    const traces::CaseHeader& header = (*written)->header;
    const CasePlan plan{.kind = subject->kind,
                        .setup = setup_of(header, std::nullopt),
                        .law = contracts().find_law(header.law),
                        .baseline = &contracts().reference_of(*subject->kind),
                        .subjects = {subject}};
    ASSERT_NE(plan.law, nullptr) << header.law;
    Script script;
    for (const traces::Step& step : (*written)->steps) script.push_back(step.op);
    const Smaller again = smaller_case(plan, *subject, script, {});
    ASSERT_TRUE(again.before.failed()) << "seed " << seed;
    EXPECT_TRUE(is_same(again.script, script)) << "seed " << seed;
    EXPECT_TRUE(is_same(again.plan.setup.config, header.config)) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Mutants, ShrinkAgain,
                         testing::Values("views.paged@mutant:shared_block_not_left",
                                         "views.paged@mutant:copies_one_row_less",
                                         "provider.paged@mutant:keeps_block_at_boundary",
                                         "layered.vector@mutant:clear_keeps_rows",
                                         "prefix.radix@mutant:staged_not_sorted",
                                         "snapshot.trie@mutant:last_token_not_compared",
                                         "cells.kv@mutant:mask_by_cell",
                                         "cells.recurrent@mutant:shared_state_is_overwritten"));

}  // namespace
}  // namespace kvo
