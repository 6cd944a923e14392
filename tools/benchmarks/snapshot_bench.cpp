// The caches of rows of contract `snapshot`: reference, optimized, and memcpy of the same bytes.
//
// A step writes one token of 8 heads of 128 to each layer, keys and values; memcpy writes the same
// rows to memory of the same kind: for `kv` the next rows of untouched buffers, for `rotating` the
// next rows of full rings. Steps and copies alternate, so that both have the
// same machine. Counters: median and slowest step, and the median of memcpy over that of the steps.
// The reference copies all rows of a layer, so it is timed with one layer, and counted for one.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "optimized/subjects.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/snapshot/cache.hpp"
#include "tools/benchmarks/timed_in_turn.hpp"

namespace kvo::snapshot {
namespace {

using tools::median;
using tools::seconds;

constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kDim = 128;
constexpr std::int64_t kRowBytes = kHeads * kDim * std::int64_t{sizeof(float)};
constexpr std::int64_t kLayers = 32;

enum class Kind : std::uint8_t { kKv, kRing };

MakeCaches optimized_caches() {
  return optimized::snapshot_caches(std::make_shared<optimized::LiveBytes>());
}

// Caches, and how much of their work is timed.
struct Side {
  MakeCaches (*make)();
  std::int64_t layers;
  std::int64_t steps;
};

Array rows(std::int64_t tokens) {
  Tensor made = make_tensor({1, kHeads, tokens, kDim});
  std::ranges::fill(made.floats(), 1.5F);
  return array_of(std::move(made));
}

void update(Cache& cache, const Array& given) {
  const auto seen = cache.update(given, given);
  KVO_CHECK(seen.has_value());
  benchmark::DoNotOptimize((*seen)->k.view.data);
}

// A cache of `held` tokens; of a ring, it is the window, too.
std::unique_ptr<Cache> filled(const MakeCaches& make, Kind kind, std::int64_t held) {
  const QuirkSet<Quirk> documented(Profile::kDocumented);
  auto cache = kind == Kind::kKv ? make.kv({}, documented) : make.rotating(held, {}, documented);
  if (held > 0) update(*cache, rows(held));
  return cache;
}
std::vector<std::unique_ptr<Cache>> filled_layers(const Side& side, Kind kind, std::int64_t held) {
  const MakeCaches make = side.make();
  std::vector<std::unique_ptr<Cache>> caches;
  for (std::int64_t i = 0; i < side.layers; ++i) caches.push_back(filled(make, kind, held));
  return caches;
}

void report(benchmark::State& state, const tools::TimedInTurn& timed, std::int64_t layers) {
  const auto sum = [](const std::vector<double>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0);
  };
  const auto slowest = [](const std::vector<double>& all) {
    return *std::ranges::max_element(all) / median(all);
  };
  const std::vector<double>& steps = timed.calls();
  const std::vector<double>& copies = timed.copies();
  state.counters["ns_a_layer"] = median(steps) / static_cast<double>(layers) * 1e9;
  state.counters["memcpy_ns"] = median(copies) / static_cast<double>(layers) * 1e9;
  state.counters["of_memcpy"] = median(copies) / median(steps);
  state.counters["of_memcpy_in_all"] = sum(copies) / sum(steps);
  state.counters["slowest"] = slowest(steps);
  state.counters["slowest_memcpy"] = slowest(copies);
}

// Steps behind `held` tokens.
void decode(benchmark::State& state, const Side& side, Kind kind, std::int64_t held) {
  const bool ring = kind == Kind::kRing;
  const auto caches = filled_layers(side, kind, held);
  const Array given = rows(1);
  // A ring settles with its first tokens behind a chunk.
  if (ring)
    for (const auto& cache : caches) update(*cache, given);
  const tools::CopiedSides copied(2 * side.layers, (ring ? held : side.steps) * kRowBytes, ring);
  tools::TimedInTurn timed;
  for (auto _ : state) {
    for (std::int64_t i = 0; i < side.steps; ++i)
      timed.time([&] { copied.write(i, kRowBytes); },
                 [&] {
                   for (const auto& cache : caches) update(*cache, given);
                 });
    state.SetIterationTime(median(timed.calls()));
  }
  report(state, timed, side.layers);
}

// A chunk of 512 behind so many tokens; memcpy writes its bytes to memory that is not touched yet.
void prefill(benchmark::State& state, const Side& side) {
  constexpr std::int64_t kChunk = 512;
  const Array chunk = rows(kChunk);
  tools::TimedInTurn timed;
  for (auto _ : state) {
    const auto caches = filled_layers(side, Kind::kKv, state.range(0));
    timed.time_call([&] {
      for (const auto& cache : caches) update(*cache, chunk);
    });
    const tools::CopiedSides copied(2 * side.layers, kChunk * kRowBytes, false);
    timed.time_copy([&] { copied.write_all(); });
    state.SetIterationTime(timed.calls().back());
  }
  report(state, timed, side.layers);
}

// A cache of so many rows: taking a snapshot, going back to it, and writing to a fork of it.
void snapshots(benchmark::State& state, const Side& side) {
  const MakeCaches make = side.make();
  const std::int64_t held = state.range(0);
  const std::unique_ptr<Cache> cache = filled(make, Kind::kKv, held);
  const Array given = rows(1);
  std::vector<double> taken;
  std::vector<double> restored;
  std::vector<double> forked;
  for (auto _ : state) {
    // Many in a row: a single one would tell where the copies before it have left the processor.
    constexpr int kTaken = 64;
    SnapshotPtr snapshot;
    taken.push_back(seconds([&] {
                      for (int i = 0; i < kTaken; ++i) snapshot = cache->snapshot(0).value();
                    }) /
                    kTaken);
    const std::unique_ptr<Cache> fork = filled(make, Kind::kKv, 0);
    restored.push_back(seconds([&] { KVO_CHECK(fork->restore(snapshot, held).value()); }));
    update(*cache, given);
    forked.push_back(seconds([&] { update(*fork, given); }));
    KVO_CHECK(cache->restore(nullptr, held).value());
    state.SetIterationTime(taken.back());
  }
  std::vector<double> copies;
  for (int i = 0; i < 5; ++i) {
    const tools::CopiedSides copied(2, held * kRowBytes, false);
    copies.push_back(seconds([&] { copied.write_all(); }));
  }
  state.counters["snapshot_ns"] = median(taken) * 1e9;
  state.counters["restore_ns"] = median(restored) * 1e9;
  state.counters["fork_write_ns"] = median(forked) * 1e9;
  state.counters["memcpy_all_ns"] = median(copies) * 1e9;
}

[[maybe_unused]] const bool kRegistered = [] {
  const auto both = [](const char* name, const auto& work, std::vector<std::int64_t> lengths,
                       std::int64_t iterations) {
    tools::register_both(name, work, Side{reference_caches, 1, 8},
                         Side{optimized_caches, kLayers, 512},
                         [&](benchmark::internal::Benchmark* one, bool) {
                           for (const std::int64_t length : lengths) one->Arg(length);
                           one->UseManualTime()->Iterations(iterations);
                         });
  };
  const auto decoded = [](Kind kind) {
    return [kind](benchmark::State& state, const Side& side) {
      decode(state, side, kind, state.range(0));
    };
  };
  both("_kv", decoded(Kind::kKv), {4'096, 32'768}, 1);
  both("_ring", decoded(Kind::kRing), {4'096, 32'768}, 1);
  both("_prefill", prefill, {0, 4'096}, 5);
  both("_snapshots", snapshots, {64, 4'096, 32'768}, 11);
  // From nothing on, token by token: all that growth costs.
  const auto from_empty = [](benchmark::State& state) {
    decode(state, {optimized_caches, state.range(1), state.range(0)}, Kind::kKv, 0);
  };
  benchmark::RegisterBenchmark("optimized_kv_from_empty", from_empty)
      ->Args({4'096, kLayers})
      ->Args({32'768, 8})
      ->UseManualTime()
      ->Iterations(1);
  return true;
}();

}  // namespace
}  // namespace kvo::snapshot
