// `groups.blocks`: reference and optimized side by side, and `prefix.blocks@optimized` beside both
// where there is one group.
//
// The work is that of prefix_bench. `request` is match, slots and free of a request of 10,000
// tokens in blocks of 16 that is held but for its end, in a pool of so many blocks that are all
// held: 64 such requests take turns. `new` makes such a request of new tokens, and
// frees it. `decode` is a step of 64 requests of 2,048 tokens and more: a token is appended to
// each, and its slot allotted. `hybrid` is a model of three groups: full attention, a window of
// 1,024 tokens, and states in blocks of 512; chunks are cut where states are to be held, and all
// that a step leaves for the caller is taken. `one` is full attention alone.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>

#include "optimized/groups/blocks_cache.hpp"
#include "optimized/prefix/block_cache.hpp"
#include "reference/groups/blocks_cache.hpp"
#include "tools/benchmarks/prefix_work.hpp"
#include "tools/benchmarks/timed_in_turn.hpp"

namespace kvo::groups {
namespace {

using prefix::kLong;
using prefix::kMost;
using prefix::kPrompt;
using prefix::kSize;
using prefix::kTurns;
using prefix::tokens_of;
using tools::seconds;

constexpr std::int64_t kWindow = 1'024;
constexpr std::int64_t kState = 512;  ///< tokens of a block of states
/// Blocks that all groups hold of a long request that ended, at most.
constexpr std::int64_t kHeld = kLong / kSize + 3 * (kWindow / kSize);

std::unique_ptr<BlockCache> with_groups(const MakeBlocks& make, bool hybrid, std::int64_t blocks) {
  Options options{.num_blocks = blocks + 1,
                  .groups = {{.kind = GroupKind::kFull, .block_size = kSize}},
                  .hash_block = kSize,
                  .max_model_len = std::int64_t{1} << 20U,
                  .max_in_flight = std::int64_t{1} << 20U,
                  .max_scheduled = std::int64_t{1} << 20U};
  if (hybrid) {
    options.groups.push_back(
        {.kind = GroupKind::kSlidingWindow, .block_size = kSize, .window = kWindow});
    options.groups.push_back({.kind = GroupKind::kMamba, .block_size = kState});
    options.retention = 0;
  }
  return make(options, {}).value();
}

/// Takes all that a step leaves for the caller.
void end_step(BlockCache& cache) {
  const CopiesReturns copies = cache.copies();
  KVO_CHECK(cache.release(copies.retained).has_value());
  benchmark::DoNotOptimize(cache.offloads());
  benchmark::DoNotOptimize(cache.fresh());
  cache.step();
}

/// Looks a request up, and computes the rest of its tokens chunk by chunk.
void compute(BlockCache& cache, std::int64_t request, std::int64_t length) {
  auto hit = cache.match(request, std::nullopt);
  KVO_CHECK(hit.has_value());
  Allocate slots{.request = request};
  Split left{.request = request};
  if (hit->length > 0) {
    slots.hit_blocks = std::move(hit->blocks);
    slots.hit_tokens = left.hit_tokens = hit->length;
  }
  for (std::int64_t computed = hit->length; computed < length;) {
    left.tokens = length - computed;
    const auto chunk = cache.split(left);
    KVO_CHECK(chunk.has_value() && *chunk > 0);
    slots.tokens = *chunk;
    const auto got = cache.allocate(slots);
    KVO_CHECK(got.has_value());
    computed += *chunk;
    KVO_CHECK(
        cache.set({.request = request, .computed = computed, .status = RequestStatus::kRunning})
            .has_value());
    end_step(cache);
    slots.hit_blocks.reset();
    slots.hit_tokens.reset();
    left.hit_tokens.reset();
  }
}

/// A request of `tokens` from its making to its end.
void live(BlockCache& cache, const MakeRequest& made) {
  KVO_CHECK(cache.request(made).has_value());
  compute(cache, made.request, std::ssize(made.tokens));
  KVO_CHECK(cache.free(made.request).has_value());
}

void wait(BlockCache& cache, std::int64_t request) {
  const prefix::SetRequest waiting{
      .request = request, .computed = 0, .status = RequestStatus::kWaiting};
  KVO_CHECK(cache.set(waiting).has_value());
}

/// Fills the cache as prefix::fill_with_requests does. Returns  how many requests take turns.
std::int64_t fill_with_requests(BlockCache& cache, std::int64_t blocks) {
  const std::int64_t count = blocks / kHeld;
  const std::int64_t distance = std::max<std::int64_t>(count / kTurns, 1);
  std::int64_t turns = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool turn = i % distance == 0 && turns < std::min(count, kTurns);
    live(cache, {.request = turn ? turns++ : kTurns, .tokens = tokens_of(i, kLong)});
  }
  return turns;
}

void requests(benchmark::State& state, const MakeBlocks& make, bool hybrid) {
  const auto cache = with_groups(make, hybrid, state.range(0));
  const std::int64_t turns = fill_with_requests(*cache, state.range(0));
  std::int64_t next = 0;
  for (auto _ : state) {
    wait(*cache, next);
    compute(*cache, next, kLong);
    KVO_CHECK(cache->free(next).has_value());
    next = (next + 1) % turns;
  }
}

void new_requests(benchmark::State& state, const MakeBlocks& make, bool hybrid) {
  const auto cache = with_groups(make, hybrid, state.range(0));
  std::int64_t number = state.range(0) / kHeld;
  fill_with_requests(*cache, state.range(0));
  MakeRequest made{.request = kTurns};
  for (auto _ : state) {
    made.tokens = tokens_of(number++, kLong);
    state.SetIterationTime(seconds([&] { live(*cache, made); }));
  }
}

void begin_steps(BlockCache& cache) {
  for (std::int64_t i = 0; i < kTurns; ++i) {
    KVO_CHECK(cache.free(i).has_value());
    KVO_CHECK(cache.request({.request = i, .tokens = tokens_of(i, kPrompt)}).has_value());
    compute(cache, i, kPrompt);
  }
}

void step(BlockCache& cache, std::int64_t length) {
  const prefix::Token token = 7;
  Allocate slot{.tokens = 1};
  prefix::SetRequest computed{.computed = length};
  for (std::int64_t i = 0; i < kTurns; ++i) {
    slot.request = computed.request = i;
    KVO_CHECK(cache.append(i, {&token, 1}).has_value());
    const auto got = cache.allocate(slot);
    KVO_CHECK(got.has_value());
    benchmark::DoNotOptimize(got->blocks.data());
    KVO_CHECK(cache.set(computed).has_value());
  }
  end_step(cache);
}

template <class Cache, class Begin, class Step>
void decode(benchmark::State& state, Cache& cache, const Begin& begin, const Step& one) {
  std::int64_t length = kMost;
  for (auto _ : state) {
    if (length == kMost) {
      length = kPrompt;
      begin(cache);
    }
    ++length;
    state.SetIterationTime(seconds([&] { one(cache, length); }));
  }
  state.SetItemsProcessed(state.iterations() * kTurns);
}

void steps(benchmark::State& state, const MakeBlocks& make, bool hybrid) {
  const auto cache = with_groups(make, hybrid, 3 * kTurns * kMost / kSize);
  decode(state, *cache, begin_steps, step);
}

// ---- prefix.blocks ----

void prefix_requests(benchmark::State& state) {
  const auto cache = prefix::with_blocks(optimized::PrefixBlockCache::make, state.range(0));
  const std::int64_t turns = std::ssize(prefix::fill_with_requests(*cache, state.range(0)));
  std::int64_t next = 0;
  for (auto _ : state) {
    prefix::allot(*cache, next, kLong, prefix::kReadNothing);
    KVO_CHECK(cache->free(next).has_value());
    next = (next + 1) % turns;
  }
}

void prefix_steps(benchmark::State& state) {
  const auto cache = prefix::with_blocks(optimized::PrefixBlockCache::make, kTurns * kMost / kSize);
  decode(state, *cache, prefix::begin_steps, [](auto& steps_of, std::int64_t length) {
    prefix::step(steps_of, length, prefix::kReadNothing);
  });
}

[[maybe_unused]] const bool kRegistered = [] {
  const auto both = [](const std::string& name, const auto& work, bool manual, bool sized) {
    for (const bool hybrid : {true, false}) {
      const auto run = [=](benchmark::State& state, const MakeBlocks& make) {
        work(state, make, hybrid);
      };
      const auto set = [&](auto* one, bool) {
        one->Unit(benchmark::kMicrosecond);
        if (sized) one->Arg(10'000)->Arg(1'000'000);
        if (manual) one->UseManualTime();
      };
      tools::register_both((hybrid ? "_hybrid_" : "_one_") + name, run, Manager::make,
                           optimized::make_groups_cache, set);
    }
  };
  both("request", requests, false, true);
  benchmark::RegisterBenchmark("prefix_blocks_request", prefix_requests)
      ->Arg(10'000)
      ->Arg(1'000'000)
      ->Unit(benchmark::kMicrosecond);
  both("new", new_requests, true, true);
  both("decode", steps, true, false);
  benchmark::RegisterBenchmark("prefix_blocks_decode", prefix_steps)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
  return true;
}();

}  // namespace
}  // namespace kvo::groups
