// start_forward with its mask, reference and optimized side by side, and memset of the same mask.
//
// The pool is filled to three quarters, the sequences' tokens one after another. Then passes follow
// until it is full: of batch 1 and 8 a decode step, one token each of as many sequences; of batch
// 512 a chunk of one sequence's prompt. `anew` takes the chunk back after each pass, so that no row
// of the mask can be kept; `window` is a sliding window over half the pool, which is never full.
// Only start_forward is timed.
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>

#include "optimized/positional/causal_cache.hpp"
#include "reference/positional/causal_cache.hpp"
#include "tools/benchmarks/positional_work.hpp"
#include "tools/benchmarks/timed_in_turn.hpp"

namespace kvo {
namespace {

using positional::kChunk;

void start_forward(benchmark::State& state, const positional::MakeCache& make, bool anew,
                   const positional::MemberOptions& member = {}) {
  positional::FilledPool pool(make, member, state.range(0), state.range(1));
  std::int64_t bytes = 0;
  for (auto _ : state) {
    if (anew) pool.take_back();
    pool.plan(state.range(2));
    state.SetIterationTime(tools::seconds([&] { pool.start(); }));
    if (bytes > 0) continue;
    const auto mask = pool.mask();
    bytes = mask->shape[0] * mask->shape[1] * std::int64_t{sizeof(float)};
  }
  state.counters["mask_bytes"] = static_cast<double>(bytes);
  state.SetBytesProcessed(state.iterations() * bytes);
}

// Keys and values of a chunk, 8 heads of 128, into cells that were written before. In turn with it,
// memcpy moves as many bytes as it reads and writes together (half of them each way) between memory
// that was touched before.
void put(benchmark::State& state, StorageType type, bool permuted_v) {
  const StorageFormat storage{type};
  positional::CacheOptions options;
  options.backend.permuted_v = permuted_v;
  options.members = {{}};
  const auto cache = optimized::PositionalCausalCache::make(options).value();
  cache->init({.max_sequences = 1, .capacity = kChunk, .max_batch = kChunk, .storage = storage})
      .value();
  std::vector<std::int32_t> positions(kChunk);
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<std::int64_t> sequences(kChunk, 0);
  KVO_CHECK(cache->start_forward({.positions = positions, .sequences = sequences}).has_value());
  const std::vector<float> values(static_cast<std::size_t>(kChunk) * 8 * 128, 1.5F);
  const positional::Rows rows{kChunk, 8, 128, values};
  // What memcpy copies: half of what is read and written.
  const tools::CopiedSides copied(
      1, static_cast<std::int64_t>(values.size() * sizeof(float) +
                                   kChunk * 8 * stored_bytes(storage, 128)));
  tools::TimedInTurn timed;
  for (auto _ : state) {
    timed.time([&] { copied.write_all(); }, [&] { KVO_CHECK(cache->put(rows, rows).has_value()); });
    state.SetIterationTime(timed.calls().back());
  }
  state.counters["of_memcpy"] = tools::median(timed.copies()) / tools::median(timed.calls());
}

// The physical limit: setting as many bytes as the mask of a chunk over a pool has.
void set_memory(benchmark::State& state) {
  std::vector<char> memory(static_cast<std::size_t>(state.range(0)) * kChunk * sizeof(float));
  for (auto _ : state) {
    state.SetIterationTime(tools::seconds([&] {
      std::memset(memory.data(), static_cast<int>(state.iterations() & 1), memory.size());
    }));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(memory.size()));
}

// Windows of half the cells that a sequence may have.
void windowed(benchmark::State& state, const positional::MakeCache& make) {
  const auto window = static_cast<std::int32_t>(state.range(0) / state.range(1) / 2);
  start_forward(state, make, false,
                {.kind = positional::MemberKind::kSwa, .window = window, .memory = window});
}

BENCHMARK_CAPTURE(put, f32, StorageType::kF32, false)->UseManualTime()->Iterations(61);
BENCHMARK_CAPTURE(put, f16, StorageType::kF16, false)->UseManualTime()->Iterations(61);
BENCHMARK_CAPTURE(put, bf16, StorageType::kBf16, false)->UseManualTime()->Iterations(61);
BENCHMARK_CAPTURE(put, f8_e4m3, StorageType::kF8E4m3, false)->UseManualTime()->Iterations(61);
BENCHMARK_CAPTURE(put, q8, StorageType::kQ8, false)->UseManualTime()->Iterations(61);
BENCHMARK_CAPTURE(put, q4, StorageType::kQ4, false)->UseManualTime()->Iterations(61);
BENCHMARK_CAPTURE(put, f32_permuted, StorageType::kF32, true)->UseManualTime()->Iterations(61);
BENCHMARK_CAPTURE(put, f16_permuted, StorageType::kF16, true)->UseManualTime()->Iterations(61);

[[maybe_unused]] const bool kRegistered = [] {
  // Cells, sequences, batch.
  const auto both = [](const char* name, const auto& work,
                       const std::vector<std::int64_t>& batches) {
    tools::register_both(name, work, positional::CausalCache::make,
                         optimized::PositionalCausalCache::make,
                         [&](benchmark::internal::Benchmark* one, bool) {
                           for (const std::int64_t cells : {4'096, 32'768})
                             for (const std::int64_t sequences : {1, 8, 64})
                               for (const std::int64_t batch : batches)
                                 one->Args({cells, sequences, batch});
                           one->UseManualTime();
                         });
  };
  const auto forward = [](bool anew) {
    return [anew](benchmark::State& state, const positional::MakeCache& make) {
      start_forward(state, make, anew);
    };
  };
  both("", forward(false), {1, 8, kChunk});
  both("_window", windowed, {1, 8, kChunk});
  both("_anew", forward(true), {kChunk});
  return true;
}();
BENCHMARK(set_memory)->Arg(4'096)->Arg(32'768)->UseManualTime();

}  // namespace
}  // namespace kvo
