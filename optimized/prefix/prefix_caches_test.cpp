// What no script of a campaign asks of the fast caches: weak hashes, allocations.
#include <algorithm>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimized/prefix/block_cache.hpp"
#include "optimized/prefix/radix_cache.hpp"
#include "reference/contract/subject/probe.hpp"
#include "reference/contract/values/random.hpp"

namespace kvo::optimized {
namespace {

using prefix::BlocksOptions;
using prefix::Ids;
using prefix::IdsView;
using prefix::RequestStatus;
using prefix::Token;
using prefix::Tokens;

constexpr QuirkSet<prefix::Quirk> kDocumented;

Ids list_of(IdsView numbers) {
  return {numbers.begin(), numbers.end()};
}

Tokens some_tokens(traces::Random& random, std::uint64_t longest) {
  Tokens tokens(1 + random.below(longest));
  for (Token& token : tokens) token = static_cast<Token>(random.below(2));
  return tokens;
}

// Requests with few different tokens, so that contents are shared and collide.
void live(PrefixBlockCache& a, PrefixBlockCache& b, std::uint64_t seed) {
  traces::Random random(seed);
  for (int step = 0; step < 600; ++step) {
    const auto number = static_cast<std::int64_t>(random.below(6));
    if (random.below(3) == 0) {
      ASSERT_TRUE(a.free(number) && b.free(number));
      const Tokens tokens = some_tokens(random, 24);
      const auto keys = a.request({.request = number, .tokens = tokens});
      const auto others = b.request({.request = number, .tokens = tokens});
      ASSERT_EQ(keys->size(), others->size());
    }
    const auto hit = a.match(number, std::nullopt);
    const auto other = b.match(number, std::nullopt);
    ASSERT_EQ(hit.has_value(), other.has_value());
    if (!hit) continue;
    ASSERT_EQ(list_of(hit->blocks), list_of(other->blocks));
    const bool fresh = a.table(number).empty();
    const Ids blocks = fresh ? list_of(hit->blocks) : Ids();
    const prefix::Allocate asked{
        .request = number, .tokens = 4, .hit_blocks = blocks, .hit_tokens = 2 * std::ssize(blocks)};
    const auto got = a.allocate(asked);
    const auto same = b.allocate(asked);
    ASSERT_EQ(got.has_value(), same.has_value());
    ASSERT_EQ(list_of(a.table(number)), list_of(b.table(number)));
    ASSERT_EQ(a.cached_tokens(number), b.cached_tokens(number));
    ASSERT_EQ(a.state().queue, b.state().queue);
    ASSERT_EQ(a.broken_invariant(), std::nullopt);
    ASSERT_EQ(b.broken_invariant(), std::nullopt);
  }
}

TEST(PrefixBlockCache, HitsAreTheSameWithAHashOfOneBit) {
  const BlocksOptions options{
      .num_blocks = 30, .block_size = 2, .max_model_len = 64, .max_in_flight = 64};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    PrefixBlockCache strong(options, kDocumented);
    PrefixBlockCache weak(options, kDocumented, 1);
    live(strong, weak, seed);
  }
}

// Allocations of a call. Without the hook in this program none would be counted.
template <class Call>
std::uint64_t allocations(const Call& call) {
  Probe probe;
  const std::uint64_t before = allocation_gate.count;
  probe(call);
  return allocation_gate.count - before;
}

TEST(PrefixBlockCache, AllocatesNothingOnceItHasSeenARoundOfRequests) {
  PrefixBlockCache cache(
      {.num_blocks = 101, .block_size = 4, .max_model_len = 400, .max_in_flight = 400},
      kDocumented);
  const auto round = [&](Token first) {
    for (std::int64_t number = 0; number < 8; ++number) {
      const prefix::MakeRequest made{.request = number,
                                     .tokens = Tokens(120, first + static_cast<Token>(number % 4))};
      prefix::Allocate asked{.request = number, .hit_blocks = Ids(100)};
      (void)cache.free(number);
      const auto spent = allocations([&] {
        (void)cache.request(made);
        const auto hit = cache.match(number, std::nullopt);
        asked.tokens = 120 - hit->length;
        asked.hit_blocks->assign(hit->blocks.begin(), hit->blocks.end());
        asked.hit_tokens = hit->length;
        (void)cache.allocate(asked);
        const Token token = 7;
        for (std::int64_t length = 121; length < 140; ++length) {
          (void)cache.append(number, {&token, 1});
          (void)cache.set(
              {.request = number, .computed = length - 1, .status = RequestStatus::kRunning});
          (void)cache.allocate({.request = number, .tokens = 1});
        }
        (void)cache.free(number);
      });
      if (first > 12) {
        EXPECT_EQ(spent, 0U) << "request " << number;
      }
    }
  };
  EXPECT_GT(allocations([] { delete new int(1); }), 0U);
  for (Token first = 0; first < 40; first += 4) round(first);  // contents that were never there
}

TEST(PrefixRadixCache, AllocatesNothingOnceItHasSeenARoundOfRequests) {
  PrefixRadixCache cache({.page_size = 4, .slots = 400}, kDocumented);
  for (Token first = 0; first < 60; first += 4) {
    for (std::int64_t number = 0; number < 4; ++number) {
      const prefix::FileRequest made{.request = number,
                                     .tokens = Tokens(120, first + static_cast<Token>(number % 2))};
      const Token token = 9;
      const auto spent = allocations([&] {
        ASSERT_TRUE(cache.request(made));
        const auto hit = cache.admit(number);
        ASSERT_TRUE(cache.extend(number, 120 - hit->length, {}));
        for (int i = 0; i < 20; ++i) ASSERT_TRUE(cache.extend(number, 1, {&token, 1}));
        ASSERT_TRUE(cache.checkpoint(number));
        ASSERT_TRUE(cache.finish(number, true));
      });
      if (first > 20) {
        EXPECT_EQ(spent, 0U) << "request " << number << " of " << first;
      }
    }
  }
}

TEST(PrefixRadixCache, SplitsKeepEveryTokenAndSlot) {
  for (const bool pairs : {false, true}) {
    traces::Random random(pairs ? 1 : 2);
    PrefixRadixCache cache({.slots = 10, .eagle = pairs}, kDocumented);
    Tokens tokens(500);
    for (Token& token : tokens) token = static_cast<Token>(random.below(1'000'000));
    Ids slots(500);
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::int64_t>(i) + 7;
    ASSERT_TRUE(cache.insert({.tokens = tokens, .slots = slots}));
    for (int step = 0; step < 300; ++step) {
      const auto length = static_cast<std::int64_t>(2 + random.below(499));
      const auto hit = cache.match({.tokens = tokens, .limit = length});
      const std::int64_t units = length - (pairs ? 1 : 0);
      ASSERT_EQ(hit->length, units);
      ASSERT_TRUE(std::ranges::equal(hit->slots, IdsView(slots).first(hit->slots.size())));
      ASSERT_EQ(cache.broken_invariant(), std::nullopt);
    }
    for (const auto& node : cache.state().nodes) {
      const auto begin = static_cast<std::size_t>(node.slots.front() - 7);
      EXPECT_TRUE(std::ranges::equal(
          node.tokens, prefix::TokensView(tokens).subspan(begin, node.tokens.size())));
    }
  }
}

}  // namespace
}  // namespace kvo::optimized
