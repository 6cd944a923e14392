// `prefix`: reference and optimized side by side.
//
// `request` is match, allocate and free of a request of 10,000 tokens in blocks of 16 that is held
// but for its end, in a pool of so many blocks that are all held: 64 such requests take turns. All
// requests of the pool have contents of their own. `decode` is a step of 64 requests of 2,048
// tokens and more: a token is appended to each, and its slot allotted. `admit` is admit, extend by
// the last page, checkpoint and finish of a request of 10,000 tokens that is held whole, in pages
// of 16, among so many other leaves of 160 tokens. `evict` takes the first of so many leaves
// and files another one.
#include <cstdint>

#include <benchmark/benchmark.h>

#include "optimized/prefix/block_cache.hpp"
#include "optimized/prefix/radix_cache.hpp"
#include "reference/prefix/blocks_cache.hpp"
#include "reference/prefix/radix_cache.hpp"
#include "tools/benchmarks/prefix_work.hpp"
#include "tools/benchmarks/timed_in_turn.hpp"

namespace kvo::prefix {
namespace {

using tools::seconds;

void requests(benchmark::State& state, const MakeBlocks& make) {
  const auto cache = with_blocks(make, state.range(0));
  const std::int64_t turns = std::ssize(fill_with_requests(*cache, state.range(0)));
  std::int64_t next = 0;
  for (auto _ : state) {
    allot(*cache, next, kLong, kReadNothing);
    KVO_CHECK(cache->free(next).has_value());
    next = (next + 1) % turns;
  }
}

void decode(benchmark::State& state, const MakeBlocks& make) {
  const auto cache = with_blocks(make, kTurns * kMost / kSize);
  std::int64_t length = kMost;
  for (auto _ : state) {
    if (length == kMost) {
      length = kPrompt;
      begin_steps(*cache);
    }
    ++length;
    state.SetIterationTime(seconds([&] { step(*cache, length, kReadNothing); }));
  }
  state.SetItemsProcessed(state.iterations() * kTurns);
}

void admit(benchmark::State& state, const MakeRadix& make) {
  const auto cache = with_leaves(make, state.range(0), 2 * kLong);
  KVO_CHECK(cache->request({.request = 0, .tokens = tokens_of(-1, kLong)}).has_value());
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
  const auto cache = with_leaves(make, state.range(0), 0);
  std::int64_t number = state.range(0);
  Insert leaf{.slots = Ids(kLeaf)};
  for (auto _ : state) {
    leaf.tokens = tokens_of(number++, kLeaf);
    state.SetIterationTime(seconds([&] {
      KVO_CHECK(cache->evict(1).has_value());
      insert(*cache, leaf, kReadNothing);
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
  blocks("_request", requests,
         [](auto* one, bool) { one->Arg(10'000)->Arg(1'000'000)->Unit(benchmark::kMicrosecond); });
  blocks("_decode", decode,
         [](auto* one, bool) { one->UseManualTime()->Unit(benchmark::kMicrosecond); });
  radix("_admit", admit,
        [](auto* one, bool) { one->Arg(100)->Arg(1'000)->Unit(benchmark::kMicrosecond); });
  radix("_evict", evict, [](auto* one, bool) {
    one->Arg(100)->Arg(1'000)->UseManualTime()->Unit(benchmark::kMicrosecond);
  });
  return true;
}();

}  // namespace
}  // namespace kvo::prefix
