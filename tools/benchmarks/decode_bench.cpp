// `layered.vector`, `provider.contiguous` and `provider.paged`, optimized: one decoded token of 32
// layers of 8 heads of 128, f32, beside memcpy of the same rows; and reading many positions.
//
// `append` writes one token of each layer where rows were written before (warm), after 0 to 511
// others; memcpy writes the same rows, layer by layer, to memory that was touched before. `cold`
// writes the first tokens of a new cache; memcpy writes them to untouched pages.
// `two_threads` has two threads append to a cache each over one pool, in turns with one thread.
// `gather` reads 4,095 or 16,000 positions of a layer. Shapes are [channels, tokens, dim]. Calls
// and copies alternate, so that both have the same machine. Medians; for `cold` means, and the
// worst token over the median one, of each token the best of all rounds: a stall of the machine
// hits a token in one round, what a cache does in all of them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <sys/mman.h>

#include "optimized/block_pool/arena_pool.hpp"
#include "optimized/layered/arena_cache.hpp"
#include "optimized/provider/contiguous_arena_cache.hpp"
#include "optimized/provider/paged_arena_cache.hpp"
#include "reference/contract/values/check.hpp"
#include "tools/benchmarks/timed_in_turn.hpp"

namespace kvo::optimized {
namespace {

constexpr std::int64_t kLayers = 32;
constexpr std::int64_t kTokens = 512;
constexpr std::int64_t kWidth = std::int64_t{8} * 128;
constexpr std::int64_t kRowBytes = kWidth * std::int64_t{sizeof(float)};

Tensor rows(std::int64_t channels, std::int64_t tokens) {
  Tensor made = make_tensor({channels, tokens, kWidth / channels});
  std::ranges::fill(made.floats(), 1.5F);
  return made;
}

/// Writes one token of a layer.
using Decode = std::function<void(std::int64_t layer)>;

Decode decode_layered(std::shared_ptr<layered::Cache> cache) {
  const Tensor row = rows(1, 1);
  return [cache = std::move(cache),
          op = layered::Append{.k = row, .v = row}](std::int64_t layer) mutable {
    op.layer = static_cast<std::uint64_t>(layer);
    KVO_CHECK(cache->append(op).has_value());
    if (layer + 1 == kLayers) KVO_CHECK(cache->advance().has_value());
  };
}
Decode decode_provider(std::shared_ptr<provider::Provider> cache, std::int64_t channels) {
  return [cache = std::move(cache), one = rows(channels, 1)](std::int64_t layer) {
    KVO_CHECK(cache->update(layer, {&one, &one}).has_value());
  };
}

std::shared_ptr<layered::Cache> layered_cache(std::optional<std::uint64_t> max_seq_len) {
  return LayeredArenaCache::make({kLayers, 8, 128}, max_seq_len, {}).value();
}

using MakeProvider = std::shared_ptr<provider::Provider> (*)(std::int64_t layers,
                                                             std::int64_t positions);
std::shared_ptr<provider::Provider> contiguous(std::int64_t layers, std::int64_t positions) {
  return ContiguousArenaCache::make({layers, positions}, {}).value();
}
std::shared_ptr<block_pool::BlockPool> pool(std::int64_t layers, std::int64_t positions) {
  const std::int64_t bytes = 2 * layers * positions * kRowBytes;
  const block_pool::Geometry geometry{.num_layers = layers,
                                      .block_size = 16,
                                      .head_dim = kWidth,
                                      .max_memory_mb = (bytes >> 20) + 2};
  return ArenaPool::make(geometry, {}).value();
}
std::shared_ptr<provider::Provider> paged_in(std::shared_ptr<block_pool::BlockPool> pool,
                                             std::int64_t layers, block_pool::Owner owner) {
  provider::PagedOptions options{.pool = std::move(pool), .num_layers = layers};
  options.owner = owner;
  return PagedArenaCache::make(options, {}).value();
}
std::shared_ptr<provider::Provider> paged(std::int64_t layers, std::int64_t positions) {
  return paged_in(pool(layers, positions), layers, 1);
}

void decode_token(const Decode& decode) {
  for (std::int64_t layer = 0; layer < kLayers; ++layer) decode(layer);
}
void decode_tokens(const Decode& decode) {
  for (std::int64_t token = 0; token < kTokens; ++token) decode_token(decode);
}

// `begin` empties the cache, whose rows were all written.
void appends(benchmark::State& state, const std::function<void()>& begin, const Decode& decode) {
  const tools::CopiedSides copied(2 * kLayers, kTokens * kRowBytes);
  tools::TimedInTurn timed;
  for (auto _ : state) {
    for (int round = 0; round < 7; ++round) {
      begin();
      for (std::int64_t token = 0; token < kTokens; ++token)
        timed.time([&] { copied.write(token, kRowBytes); }, [&] { decode_token(decode); });
    }
    timed.report(state);
  }
}

void layered_append(benchmark::State& state) {
  const auto cache = layered_cache(static_cast<std::uint64_t>(kTokens));
  const Decode decode = decode_layered(cache);
  decode_tokens(decode);
  appends(
      state, [&] { cache->clear(); }, decode);
}

void fill(provider::Provider& cache, const Tensor& all) {
  for (std::int64_t layer = 0; layer < kLayers; ++layer)
    KVO_CHECK(cache.update(layer, {&all, &all}).has_value());
}

void provider_append(benchmark::State& state, MakeProvider make) {
  const auto cache = make(kLayers, kTokens);
  fill(*cache, rows(state.range(0), kTokens));
  appends(
      state, [&] { KVO_CHECK(cache->truncate(0).has_value()); },
      decode_provider(cache, state.range(0)));
}

// Seconds until `work` is done by the first `threads` of two threads, each with its number.
double seconds_of(std::size_t threads, const std::function<void(std::size_t thread)>& work) {
  return tools::seconds([&] {
    std::vector<std::jthread> running;
    for (std::size_t t = 0; t < threads; ++t) running.emplace_back(work, t);
  });
}

// What two threads do in a time of what one does, for the calls and for memcpy of the same rows.
void paged_two_threads(benchmark::State& state) {
  constexpr std::size_t kThreads = 2;
  const auto blocks = pool(kLayers, kThreads * kTokens);
  std::array<std::shared_ptr<provider::Provider>, kThreads> caches;
  std::array<Decode, kThreads> decode_in;
  std::vector<tools::CopiedSides> copied;
  for (std::size_t t = 0; t < kThreads; ++t) {
    caches[t] = paged_in(blocks, kLayers, t + 1);
    fill(*caches[t], rows(1, kTokens));
    decode_in[t] = decode_provider(caches[t], 1);
    copied.emplace_back(2 * kLayers, kTokens * kRowBytes);
  }
  const auto decode = [&](std::size_t thread) {
    KVO_CHECK(caches[thread]->truncate(0).has_value());
    decode_tokens(decode_in[thread]);
  };
  const auto copy = [&](std::size_t thread) {
    for (std::int64_t token = 0; token < kTokens; ++token) copied[thread].write(token, kRowBytes);
  };
  std::array<std::vector<double>, kThreads> calls;
  std::array<std::vector<double>, kThreads> copies;
  for (auto _ : state) {
    for (int round = 0; round < 15; ++round)
      for (const std::size_t threads : {1, 2, 2, 1}) {
        calls[threads - 1].push_back(seconds_of(threads, decode));
        copies[threads - 1].push_back(seconds_of(threads, copy));
      }
    const auto of_one = [](const std::array<std::vector<double>, kThreads>& seconds) {
      return kThreads * tools::median(seconds[0]) / tools::median(seconds[1]);
    };
    const double token = tools::median(calls[1]) / (kThreads * kTokens);
    state.SetIterationTime(token);
    state.counters["ns"] = token * 1e9;
    state.counters["of_one_thread"] = of_one(calls);
    state.counters["memcpy_of_one_thread"] = of_one(copies);
  }
}

void report_cold(benchmark::State& state, const tools::TimedInTurn& timed, std::size_t tokens) {
  const auto best_of_rounds = [tokens](const std::vector<double>& all) {
    std::vector<double> best(tokens, std::numeric_limits<double>::max());
    for (std::size_t i = 0; i < all.size(); ++i)
      best[i % tokens] = std::min(best[i % tokens], all[i]);
    return best;
  };
  const std::vector<double> calls = best_of_rounds(timed.calls());
  const std::vector<double> copies = best_of_rounds(timed.copies());
  const auto mean = [](const std::vector<double>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  };
  const double worst = *std::ranges::max_element(calls);
  state.SetIterationTime(mean(calls));
  state.counters["mean_ns"] = mean(calls) * 1e9;
  state.counters["memcpy_ns"] = mean(copies) * 1e9;
  state.counters["of_memcpy"] = mean(copies) / mean(calls);
  state.counters["median_ns"] = tools::median(calls) * 1e9;
  state.counters["worst_ns"] = worst * 1e9;
  state.counters["worst_of_median"] = worst / tools::median(calls);
  state.counters["worst_memcpy_ns"] = *std::ranges::max_element(copies) * 1e9;
}

// Untouched pages, without huge ones.
using FreshPages = std::unique_ptr<void, std::function<void(void*)>>;
FreshPages fresh_pages(std::size_t bytes) {
  void* const begin =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  KVO_CHECK(begin != MAP_FAILED);
  return {begin, [bytes](void* pages) { (void)::munmap(pages, bytes); }};
}

void cold(benchmark::State& state, const std::function<Decode()>& make) {
  // What malloc has kept of the round before would be warm.
  constexpr int kMapped = 1 << 20;
  KVO_CHECK(::mallopt(M_MMAP_THRESHOLD, kMapped) == 1);
  const auto tokens = static_cast<std::size_t>(state.range(0));
  const std::size_t side = tokens * kRowBytes;
  const std::vector<unsigned char> from(kRowBytes, 2);
  tools::TimedInTurn timed;
  for (auto _ : state) {
    for (int round = 0; round < 5; ++round) {
      const Decode decode = make();
      const FreshPages pages = fresh_pages(2 * kLayers * side);
      auto* const to = static_cast<unsigned char*>(pages.get());
      for (std::size_t token = 0; token < tokens; ++token)
        timed.time(
            [&] {
              for (std::size_t i = 0; i < 2 * kLayers; ++i)
                std::memcpy(to + i * side + token * kRowBytes, from.data(), kRowBytes);
            },
            [&] { decode_token(decode); });
    }
    report_cold(state, timed, tokens);
  }
}

void provider_cold(benchmark::State& state, MakeProvider make) {
  cold(state, [&] { return decode_provider(make(kLayers, state.range(0)), state.range(1)); });
}

void gather(benchmark::State& state, MakeProvider make) {
  const std::int64_t positions = state.range(1);
  const auto cache = make(1, positions + 105);
  const Tensor all = rows(state.range(0), positions);
  KVO_CHECK(cache->update(0, {&all, &all}).has_value());
  const tools::CopiedSides copied(1, 2 * positions * kRowBytes);
  tools::TimedInTurn timed;
  for (auto _ : state) {
    for (int i = 0; i < 41; ++i)
      timed.time([&] { copied.write_all(); },
                 [&] {
                   const auto got = cache->get(0);
                   KVO_CHECK(got.has_value() && got->has_value());
                   benchmark::DoNotOptimize((*got)->k.storage.get());
                 });
    timed.report(state);
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  const auto add = [](const char* name, std::vector<std::vector<std::int64_t>> args,
                      const auto&... work) {
    auto* one = benchmark::RegisterBenchmark(name, work...)->UseManualTime()->Iterations(1);
    for (const auto& arg : args) one->Args(arg);
  };
  const std::vector<std::vector<std::int64_t>> channels{{1}, {8}};
  const std::vector<std::vector<std::int64_t>> gathers{
      {1, 4'095}, {8, 4'095}, {1, 16'000}, {8, 16'000}};
  add("layered_append", {}, layered_append);
  add("contiguous_append", channels, provider_append, contiguous);
  add("paged_append", channels, provider_append, paged);
  add("paged_two_threads", {}, paged_two_threads);
  add("contiguous_gather", gathers, gather, contiguous);
  add("paged_gather", gathers, gather, paged);
  // Last, because they change how malloc works.
  const std::vector<std::vector<std::int64_t>> tokens{{512}, {2'048}};
  add("layered_cold", tokens, [](benchmark::State& state) {
    cold(state, [] { return decode_layered(layered_cache(std::nullopt)); });
  });
  add("layered_with_capacity_cold", tokens, [](benchmark::State& state) {
    const auto capacity = static_cast<std::uint64_t>(state.range(0));
    cold(state, [=] { return decode_layered(layered_cache(capacity)); });
  });
  add("contiguous_cold", {{512, 1}, {512, 8}}, provider_cold, contiguous);
  add("paged_cold", {{512, 1}, {512, 8}}, provider_cold, paged);
  return true;
}();

}  // namespace
}  // namespace kvo::optimized
