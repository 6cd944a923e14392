// `views.paged`: reference, optimized, and memcpy of the same bytes.
//
// Rows have 8 heads of 128, f32; blocks have 16 tokens. `append` is one token of each of 32 layers,
// keys and values, behind so many held ones, and its commit; memcpy writes the same rows to memory
// that was touched before, as the blocks were. `views` asks for the views of one layer. `packed`
// packs all tokens of a layer, into memory that was packed to before; memcpy copies as many bytes
// from and to touched memory. `packed_step` packs behind an append of one token. Calls and copies
// alternate, so that both have the same machine; medians.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "optimized/views/paged_views_cache.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/views/paged_cache.hpp"
#include "tools/benchmarks/timed_in_turn.hpp"

namespace kvo::views {
namespace {

using Make = std::unique_ptr<Pool> (*)(const Options& options);

constexpr std::int64_t kWidth = std::int64_t{8} * 128;
constexpr std::int64_t kRowBytes = kWidth * std::int64_t{sizeof(float)};

Options options(std::int64_t layers) {
  Options made{.num_layers = layers,
               .block_size = 16,
               .num_kv_heads = 8,
               .head_dim = 128,
               .max_seq_len = std::int64_t{1} << 20U,
               .blocks = std::int64_t{1} << 20U};
  made.devices.resize(static_cast<std::size_t>(layers));
  return made;
}

Tensor rows(std::int64_t tokens) {
  Tensor made = make_tensor({tokens, kWidth});
  std::ranges::fill(made.floats(), 1.5F);
  return made;
}

void append(Cache& cache, std::int64_t layers, const Tensor& given) {
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto done = cache.append(layer, given, given);
    KVO_CHECK(done.has_value());
    benchmark::DoNotOptimize(done->views.data());
  }
  KVO_CHECK(cache.commit(given.shape[0]).has_value());
}

// One token of each layer behind so many.
void appends(benchmark::State& state, Make make, std::int64_t layers, std::int64_t steps) {
  const std::unique_ptr<Pool> pool = make(options(layers));
  const std::unique_ptr<Cache> cache = pool->make_cache();
  const Tensor one = rows(1);
  // Blocks that were used before, as after some other sequence.
  append(*cache, layers, rows(state.range(0) + steps));
  cache->truncate(state.range(0));
  const tools::CopiedSides copied(2 * layers, steps * kRowBytes);
  tools::TimedInTurn timed;
  for (auto _ : state) {
    for (std::int64_t step = 0; step < steps; ++step)
      timed.time([&] { copied.write(step, kRowBytes); }, [&] { append(*cache, layers, one); });
    timed.report(state);
  }
}

void reading(benchmark::State& state, Make make, bool packed, int times) {
  const std::int64_t tokens = state.range(0);
  const std::unique_ptr<Pool> pool = make(options(1));
  const std::unique_ptr<Cache> cache = pool->make_cache();
  const Tensor all = rows(tokens);
  const tools::CopiedSides copied(1, 2 * tokens * kRowBytes);
  tools::TimedInTurn timed;
  for (auto _ : state) {
    for (int i = 0; i < times; ++i) {
      cache->truncate(0);
      append(*cache, 1, all);
      timed.time([&] { copied.write_all(); },
                 [&] {
                   if (packed)
                     benchmark::DoNotOptimize(cache->views_packed(0).data());
                   else
                     benchmark::DoNotOptimize(cache->views(0).data());
                 });
    }
    timed.forget_first();  // it is packed to memory that was never touched
    timed.report(state);
  }
}

void packed_steps(benchmark::State& state, Make make, int times) {
  const std::unique_ptr<Pool> pool = make(options(1));
  const std::unique_ptr<Cache> cache = pool->make_cache();
  append(*cache, 1, rows(state.range(0)));
  benchmark::DoNotOptimize(cache->views_packed(0).data());
  const Tensor one = rows(1);
  const tools::CopiedSides copied(2, kRowBytes);
  tools::TimedInTurn timed;
  for (auto _ : state) {
    for (int i = 0; i < times; ++i) {
      append(*cache, 1, one);
      timed.time([&] { copied.write(0, kRowBytes); },
                 [&] { benchmark::DoNotOptimize(cache->views_packed(0).data()); });
    }
    timed.report(state);
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  using benchmark::RegisterBenchmark;
  constexpr auto kFast = optimized::make_paged_views;
  const auto shapes = [](benchmark::internal::Benchmark* one) {
    one->Arg(4'096)->Arg(32'768)->UseManualTime()->Iterations(1);
  };
  shapes(RegisterBenchmark("reference_append", appends, make_paged, 2, 16));
  const auto one = RegisterBenchmark("optimized_append", appends, kFast, 32, 512);
  one->Arg(0)->Arg(4'096)->UseManualTime()->Iterations(1);
  shapes(RegisterBenchmark("reference_views", reading, make_paged, false, 5));
  shapes(RegisterBenchmark("optimized_views", reading, kFast, false, 11));
  shapes(RegisterBenchmark("reference_packed", reading, make_paged, true, 3));
  shapes(RegisterBenchmark("optimized_packed", reading, kFast, true, 11));
  shapes(RegisterBenchmark("optimized_packed_step", packed_steps, kFast, 512));
  return true;
}();

}  // namespace
}  // namespace kvo::views
