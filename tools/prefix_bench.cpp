// `prefix`: reference and optimized side by side.
//
// `request` is match, allocate and free of a request of 10,000 tokens in blocks of 16 that is held
// but for its end, in a pool of so many blocks that are all held: 64 such requests take turns. All
// requests of the pool have contents of their own. `decode` is a step of 64 requests of 2,048
// tokens and more: a token is appended to each, and its slot allotted. `admit` is admit, extend by
// the last page, checkpoint and finish of a request of 10,000 tokens that is held whole, in pages
// of 16, among so many other leaves of 160 tokens. `evict` takes the first of so many leaves
// and files another one.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "optimized/prefix/block_cache.hpp"
#include "optimized/prefix/radix_cache.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/prefix/blocks_cache.hpp"
#include "reference/prefix/radix_cache.hpp"
#include "tools/distinct_tokens.hpp"
#include "tools/timed_in_turn.hpp"

namespace kvo::prefix {
namespace {

using tools::seconds;

constexpr std::int64_t kLong = 10'000;
constexpr std::int64_t kSize = 16;  ///< tokens of a block, and of a page
constexpr std::int64_t kTurns = 64;

// ---- blocks ----

std::unique_ptr<BlockCache> made(const MakeBlocks& make, std::int64_t blocks) {
  auto cache = make({.num_blocks = blocks + 1,
                     .block_size = kSize,
                     .max_model_len = std::int64_t{1} << 20U,
                     .max_in_flight = std::int64_t{1} << 20U},
                    {});
  KVO_CHECK(cache.has_value());
  return std::move(*cache);
}

void allot(BlockCache& cache, std::int64_t request, std::int64_t length) {
  const auto hit = cache.match(request, std::nullopt);
  KVO_CHECK(hit.has_value());
  const auto done = cache.allocate(
      request,
      {.tokens = length - hit->length, .hit_blocks = hit->blocks, .hit_tokens = hit->length});
  KVO_CHECK(done.has_value());
}

void requests(benchmark::State& state, const MakeBlocks& make) {
  const std::int64_t blocks = state.range(0);
  const auto cache = made(make, blocks);
  const std::int64_t count = blocks / (kLong / kSize);
  const std::int64_t apart = std::max<std::int64_t>(count / kTurns, 1);
  const std::int64_t turns = std::min(count, kTurns);
  // Those that take turns keep their numbers; the others share one.
  for (std::int64_t i = 0; i < count; ++i) {
    const bool turn = i % apart == 0 && i / apart < turns;
    const std::int64_t number = turn ? i / apart : turns;
    KVO_CHECK(cache->request(number, {.tokens = tokens_of(i, kLong)}).has_value());
    allot(*cache, number, kLong);
    KVO_CHECK(cache->free(number).has_value());
  }
  std::int64_t next = 0;
  for (auto _ : state) {
    allot(*cache, next, kLong);
    KVO_CHECK(cache->free(next).has_value());
    next = (next + 1) % turns;
  }
}

void decode(benchmark::State& state, const MakeBlocks& make) {
  constexpr std::int64_t kPrompt = 2'048;
  constexpr std::int64_t kMost = 4'096;
  const auto cache = made(make, kTurns * kMost / kSize);
  const Token token = 7;
  std::int64_t length = kMost;
  for (auto _ : state) {
    if (length == kMost) {
      length = kPrompt;
      for (std::int64_t i = 0; i < kTurns; ++i) {
        KVO_CHECK(cache->free(i).has_value());
        KVO_CHECK(cache->request(i, {.tokens = tokens_of(i, kPrompt)}).has_value());
        allot(*cache, i, kPrompt);
        const RequestChange running{.computed = kPrompt, .status = RequestStatus::kRunning};
        KVO_CHECK(cache->set(i, running).has_value());
      }
    }
    ++length;
    state.SetIterationTime(seconds([&] {
      for (std::int64_t i = 0; i < kTurns; ++i) {
        KVO_CHECK(cache->append(i, {&token, 1}).has_value());
        KVO_CHECK(cache->allocate(i, {.tokens = 1}).has_value());
        KVO_CHECK(cache->set(i, {.computed = length}).has_value());
      }
    }));
  }
  state.SetItemsProcessed(state.iterations() * kTurns);
}

// ---- radix ----

// A tree with so many leaves of 160 tokens, and room for some more.
std::unique_ptr<RadixCache> made(const MakeRadix& make, std::int64_t leaves, std::int64_t more) {
  constexpr std::int64_t kShort = 10 * kSize;
  auto cache = make({.page_size = kSize, .slots = leaves * kShort + more}, {});
  KVO_CHECK(cache.has_value());
  for (std::int64_t i = 0; i < leaves; ++i) {
    const auto slots = (*cache)->alloc(kShort);
    KVO_CHECK(slots.has_value());
    const Numbers own(slots->begin(), slots->end());
    KVO_CHECK((*cache)->insert({.tokens = tokens_of(i, kShort), .slots = own}).has_value());
  }
  return std::move(*cache);
}

void admit(benchmark::State& state, const MakeRadix& make) {
  const auto cache = made(make, state.range(0), 2 * kLong);
  KVO_CHECK(cache->request(0, {.tokens = tokens_of(-1, kLong)}).has_value());
  const auto life = [&] {
    const auto hit = cache->admit(0);
    KVO_CHECK(hit.has_value());
    const auto extended = cache->extend(0, kLong - hit->length, {});
    KVO_CHECK(extended.has_value() && !extended->exhausted);
    KVO_CHECK(cache->checkpoint(0).has_value());
    KVO_CHECK(cache->finish(0, true).has_value());
  };
  life();
  for (auto _ : state) life();
}

void evict(benchmark::State& state, const MakeRadix& make) {
  const auto cache = made(make, state.range(0), 0);
  std::int64_t number = state.range(0);
  for (auto _ : state) {
    const Tokens tokens = tokens_of(number++, 10 * kSize);
    state.SetIterationTime(seconds([&] {
      KVO_CHECK(cache->evict(1).has_value());
      const auto slots = cache->alloc(10 * kSize);
      KVO_CHECK(slots.has_value());
      KVO_CHECK(cache->insert({.tokens = tokens, .slots = *slots}).has_value());
    }));
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  const auto blocks = [](const char* name, const auto& work, const auto& set) {
    tools::register_both(name, work, BlockManager::make, optimized::PrefixBlockCache::make, set);
  };
  const auto radix = [](const char* name, const auto& work, const auto& set) {
    tools::register_both(name, work, RadixManager::make, optimized::PrefixRadixCache::make, set);
  };
  blocks("request", requests,
         [](auto* one, bool) { one->Arg(10'000)->Arg(1'000'000)->Unit(benchmark::kMicrosecond); });
  blocks("decode", decode,
         [](auto* one, bool) { one->UseManualTime()->Unit(benchmark::kMicrosecond); });
  radix("admit", admit,
        [](auto* one, bool) { one->Arg(100)->Arg(1'000)->Unit(benchmark::kMicrosecond); });
  radix("evict", evict, [](auto* one, bool) {
    one->Arg(100)->Arg(1'000)->UseManualTime()->Unit(benchmark::kMicrosecond);
  });
  return true;
}();

}  // namespace
}  // namespace kvo::prefix
