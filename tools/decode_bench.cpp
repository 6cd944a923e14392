// `layered.vector`, `provider.contiguous` and `provider.paged`, optimized: one decoded token of 32
// layers of 8 heads of 128, f32, beside memcpy of the same rows; and reading many positions.
//
// `append` writes one token of each layer where rows were written before (warm), behind 0 to 511
// others; memcpy writes the same rows, layer by layer, to memory that was touched before. `gather`
// reads 4,095 positions of a layer. Shapes are [channels, tokens, dim]. Calls and copies alternate,
// so that both have the same machine; medians, and the worst call in `worst_ns`.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "optimized/block_pool/arena_pool.hpp"
#include "optimized/layered/arena_cache.hpp"
#include "optimized/provider/contiguous_arena_cache.hpp"
#include "optimized/provider/paged_arena_cache.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::optimized {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLayers = 32;
constexpr std::int64_t kTokens = 512;
constexpr std::int64_t kWidth = std::int64_t{8} * 128;
constexpr std::size_t kRowBytes = static_cast<std::size_t>(kWidth) * sizeof(float);

template <class Call>
double nanoseconds(const Call& call) {
  const auto begin = Clock::now();
  call();
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

double median(std::vector<double> all) {
  std::ranges::nth_element(all, all.begin() + std::ssize(all) / 2);
  return all[all.size() / 2];
}

void report(benchmark::State& state, const std::vector<double>& calls,
            const std::vector<double>& copies) {
  state.SetIterationTime(median(calls) * 1e-9);
  state.counters["ns"] = median(calls);
  state.counters["memcpy_ns"] = median(copies);
  state.counters["of_memcpy"] = median(copies) / median(calls);
  state.counters["worst_ns"] = *std::ranges::max_element(calls);
}

Tensor rows(std::int64_t channels, std::int64_t tokens) {
  Tensor made = make_tensor({channels, tokens, kWidth / channels});
  std::ranges::fill(made.floats(), 1.5F);
  return made;
}

// `decode` writes one token of a layer; `begin` empties the cache, whose rows were all written.
void appends(benchmark::State& state, const std::function<void()>& begin,
             const std::function<void(std::int64_t layer)>& decode,
             const std::function<void()>& end_of_token) {
  std::vector<std::vector<unsigned char>> to(
      static_cast<std::size_t>(2 * kLayers),
      std::vector<unsigned char>(static_cast<std::size_t>(kTokens) * kRowBytes, 1));
  const std::vector<unsigned char> from(kRowBytes, 2);
  std::vector<double> calls;
  std::vector<double> copies;
  for (auto _ : state) {
    for (int round = 0; round < 7; ++round) {
      begin();
      for (std::size_t token = 0; token < static_cast<std::size_t>(kTokens); ++token) {
        copies.push_back(nanoseconds([&] {
          for (auto& side : to)
            std::memcpy(side.data() + token * kRowBytes, from.data(), kRowBytes);
          benchmark::ClobberMemory();
        }));
        calls.push_back(nanoseconds([&] {
          for (std::int64_t layer = 0; layer < kLayers; ++layer) decode(layer);
          end_of_token();
        }));
      }
    }
  }
  report(state, calls, copies);
}

void layered_append(benchmark::State& state) {
  const auto cache =
      LayeredArenaCache::make({kLayers, 8, 128}, static_cast<std::uint64_t>(kTokens), {}).value();
  const std::vector<float> row(static_cast<std::size_t>(kWidth), 1.5F);
  const auto decode = [&](std::int64_t layer) {
    KVO_CHECK(cache->append(static_cast<std::uint64_t>(layer), row, row).has_value());
  };
  const auto advance = [&] { KVO_CHECK(cache->advance().has_value()); };
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t layer = 0; layer < kLayers; ++layer) decode(layer);
    advance();
  }
  appends(
      state, [&] { cache->clear(); }, decode, advance);
}

void fill(provider::Provider& cache, const Tensor& all) {
  for (std::int64_t layer = 0; layer < kLayers; ++layer)
    KVO_CHECK(cache.update(layer, {&all, &all}).has_value());
}

void provider_append(benchmark::State& state, provider::Provider& cache, std::int64_t channels) {
  const Tensor one = rows(channels, 1);
  fill(cache, rows(channels, kTokens));
  appends(
      state, [&] { KVO_CHECK(cache.truncate(0).has_value()); },
      [&](std::int64_t layer) {
        KVO_CHECK(cache.update(layer, {&one, &one}).has_value());
      },
      [] {});
}

std::unique_ptr<provider::Contiguous> contiguous(std::int64_t layers, std::int64_t positions) {
  return ContiguousArenaCache::make(layers, positions, {}).value();
}

std::unique_ptr<provider::Paged> paged(std::int64_t layers, std::int64_t positions) {
  const std::int64_t bytes = 2 * layers * positions * static_cast<std::int64_t>(kRowBytes);
  const block_pool::Geometry geometry{.num_layers = layers,
                                      .block_size = 16,
                                      .head_dim = kWidth,
                                      .max_memory_mb = (bytes >> 20) + 2};
  provider::PagedOptions options{.pool = ArenaPool::make(geometry, {}).value(),
                                 .num_layers = layers};
  options.owner = 1;
  return PagedArenaCache::make(options, {}).value();
}

void contiguous_append(benchmark::State& state) {
  provider_append(state, *contiguous(kLayers, kTokens), state.range(0));
}
void paged_append(benchmark::State& state) {
  provider_append(state, *paged(kLayers, kTokens), state.range(0));
}

void gather(benchmark::State& state, provider::Provider& cache, std::int64_t channels) {
  constexpr std::int64_t kPositions = 4'095;
  const Tensor all = rows(channels, kPositions);
  KVO_CHECK(cache.update(0, {&all, &all}).has_value());
  const std::vector<unsigned char> from(2 * static_cast<std::size_t>(kPositions) * kRowBytes, 1);
  std::vector<unsigned char> to(from.size(), 2);
  std::vector<double> calls;
  std::vector<double> copies;
  for (auto _ : state) {
    for (int i = 0; i < 41; ++i) {
      copies.push_back(nanoseconds([&] {
        std::memcpy(to.data(), from.data(), to.size());
        benchmark::ClobberMemory();
      }));
      calls.push_back(nanoseconds([&] {
        const auto got = cache.get(0);
        KVO_CHECK(got.has_value() && got->has_value());
        benchmark::DoNotOptimize((*got)->k.storage.get());
      }));
    }
  }
  report(state, calls, copies);
}

void contiguous_gather(benchmark::State& state) {
  gather(state, *contiguous(1, 4'200), state.range(0));
}
void paged_gather(benchmark::State& state) {
  gather(state, *paged(1, 4'200), state.range(0));
}

void channels(benchmark::internal::Benchmark* one) {
  one->Arg(1)->Arg(8)->UseManualTime()->Iterations(1);
}
BENCHMARK(layered_append)->UseManualTime()->Iterations(1);
BENCHMARK(contiguous_append)->Apply(channels);
BENCHMARK(paged_append)->Apply(channels);
BENCHMARK(contiguous_gather)->Apply(channels);
BENCHMARK(paged_gather)->Apply(channels);

}  // namespace
}  // namespace kvo::optimized
