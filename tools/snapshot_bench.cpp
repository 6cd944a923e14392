// The caches of rows of contract `snapshot`: reference, optimized, and memcpy of the same bytes.
//
// A step writes one token of 8 heads of 128 to each layer, keys and values; memcpy writes the same
// rows to memory of the same kind: for `kv` the next rows of buffers that nobody has touched yet,
// for `rotating` the next rows of full rings. Steps and copies alternate, so that both have the
// same machine. Counters: median and slowest step, and the median of memcpy over that of the steps.
// The reference copies all rows of a layer, so it is timed with one layer, and counted for one.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "optimized/snapshot/subjects.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/snapshot/kv_cache.hpp"
#include "reference/snapshot/rotating_cache.hpp"
#include "tools/timed_in_turn.hpp"

namespace kvo::snapshot {
namespace {

using tools::median;
using tools::seconds;

using Quirks = QuirkSet<Quirk>;

constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kDim = 128;
constexpr std::int64_t kRowBytes = kHeads * kDim * std::int64_t{sizeof(float)};
constexpr std::int64_t kLayers = 32;

enum class Kind : std::uint8_t { kKv, kRing };

MakeCaches references() {
  MakeCaches make;
  make.kv = [](const StorageFormat& storage, Quirks quirks) {
    return std::make_unique<KvCache>(storage, quirks);
  };
  make.rotating = [](std::int64_t window, const StorageFormat& storage, Quirks quirks) {
    return std::make_unique<RotatingCache>(window, storage, quirks);
  };
  return make;
}

MakeCaches optimized_caches() {
  return optimized::snapshot_caches(std::make_shared<optimized::LiveBytes>());
}

std::unique_ptr<Cache> make(const MakeCaches& maker, Kind kind, std::int64_t window) {
  const Quirks documented(Profile::kDocumented);
  return kind == Kind::kKv ? maker.kv({}, documented) : maker.rotating(window, {}, documented);
}

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

void fill(Cache& cache, std::int64_t tokens) {
  if (tokens > 0) update(cache, rows(tokens));
}

void report(benchmark::State& state, const std::vector<double>& steps,
            const std::vector<double>& copies, std::int64_t layers) {
  const double step = median(steps) / static_cast<double>(layers);
  const double copy = median(copies) / static_cast<double>(layers);
  double sum = 0;
  double copied = 0;
  for (const double one : steps) sum += one;
  for (const double one : copies) copied += one;
  state.counters["ns_a_layer"] = step * 1e9;
  state.counters["memcpy_ns"] = copy * 1e9;
  state.counters["of_memcpy"] = copy / step;
  state.counters["of_memcpy_in_all"] = copied / sum;
  state.counters["slowest"] = *std::ranges::max_element(steps) / median(steps);
  state.counters["slowest_memcpy"] = *std::ranges::max_element(copies) / median(copies);
}

// Where memcpy writes.
class Buffers {
 public:
  Buffers(std::int64_t layers, std::int64_t row_count, bool touched) : row_count_(row_count) {
    const auto bytes = static_cast<std::size_t>(row_count * kRowBytes);
    for (std::int64_t i = 0; i < 2 * layers; ++i) {
      all_.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));  // NOLINT
      if (touched) std::memset(all_.back().get(), 1, bytes);
    }
  }
  void put(const Array& given, std::int64_t at) {
    for (const auto& one : all_)
      std::memcpy(one.get() + at % row_count_ * kRowBytes, given.view.data, kRowBytes);
    benchmark::ClobberMemory();
  }

 private:
  std::int64_t row_count_;
  std::vector<std::unique_ptr<std::byte[]>> all_;  // NOLINT(modernize-avoid-c-arrays)
};

// Steps behind `held` tokens.
void decode(benchmark::State& state, const MakeCaches& maker, Kind kind, std::int64_t layers,
            std::int64_t held, std::int64_t steps) {
  const std::int64_t window = kind == Kind::kRing ? held : 0;
  std::vector<std::unique_ptr<Cache>> caches;
  for (std::int64_t i = 0; i < layers; ++i) {
    caches.push_back(make(maker, kind, window));
    fill(*caches.back(), held);
  }
  const Array given = rows(1);
  // A ring settles with its first tokens behind a chunk.
  if (kind == Kind::kRing)
    for (const auto& cache : caches) update(*cache, given);
  const std::int64_t capacity = kind == Kind::kRing ? held : steps;
  Buffers buffers(layers, capacity, kind == Kind::kRing);
  std::vector<double> spent;
  std::vector<double> copies;
  for (auto _ : state) {
    for (std::int64_t i = 0; i < steps; ++i) {
      copies.push_back(seconds([&] { buffers.put(given, i); }));
      spent.push_back(seconds([&] {
        for (const auto& cache : caches) update(*cache, given);
      }));
    }
    state.SetIterationTime(median(spent));
  }
  report(state, spent, copies, layers);
}

// From nothing on, token by token: all that growth costs.
void optimized_kv_from_empty(benchmark::State& state) {
  decode(state, optimized_caches(), Kind::kKv, state.range(1), 0, state.range(0));
}

// A chunk of 512 behind `held` tokens; memcpy writes its bytes to memory that is not touched yet.
void prefill(benchmark::State& state, const MakeCaches& maker, std::int64_t layers) {
  constexpr std::int64_t kChunk = 512;
  const Array chunk = rows(kChunk);
  std::vector<double> spent;
  std::vector<double> copies;
  for (auto _ : state) {
    std::vector<std::unique_ptr<Cache>> caches;
    for (std::int64_t i = 0; i < layers; ++i) {
      caches.push_back(make(maker, Kind::kKv, 0));
      fill(*caches.back(), state.range(0));
    }
    spent.push_back(seconds([&] {
      for (const auto& cache : caches) update(*cache, chunk);
    }));
    const auto bytes = static_cast<std::size_t>(kChunk * kRowBytes);
    std::vector<std::unique_ptr<std::byte[]>> buffers;  // NOLINT(modernize-avoid-c-arrays)
    for (std::int64_t i = 0; i < 2 * layers; ++i)
      buffers.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));  // NOLINT
    copies.push_back(seconds([&] {
      for (const auto& buffer : buffers) std::memcpy(buffer.get(), chunk.view.data, bytes);
    }));
    state.SetIterationTime(spent.back());
  }
  report(state, spent, copies, layers);
}
// A cache of so many rows: taking a snapshot, going back to it, and writing to a fork of it.
void snapshots(benchmark::State& state, const MakeCaches& maker) {
  const std::unique_ptr<Cache> cache = make(maker, Kind::kKv, 0);
  const std::int64_t held = state.range(0);
  fill(*cache, held);
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
    const std::unique_ptr<Cache> fork = make(maker, Kind::kKv, 0);
    restored.push_back(seconds([&] { KVO_CHECK(fork->restore(snapshot, held).value()); }));
    update(*cache, given);
    forked.push_back(seconds([&] { update(*fork, given); }));
    KVO_CHECK(cache->restore(nullptr, held).value());
    state.SetIterationTime(taken.back());
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(held * kRowBytes));
  std::vector<double> copies;
  for (int i = 0; i < 5; ++i) {
    auto to = std::make_unique_for_overwrite<std::byte[]>(2 * bytes.size());  // NOLINT
    copies.push_back(seconds([&] {
      std::memcpy(to.get(), bytes.data(), bytes.size());
      std::memcpy(to.get() + bytes.size(), bytes.data(), bytes.size());
    }));
  }
  state.counters["snapshot_ns"] = median(taken) * 1e9;
  state.counters["restore_ns"] = median(restored) * 1e9;
  state.counters["fork_write_ns"] = median(forked) * 1e9;
  state.counters["memcpy_all_ns"] = median(copies) * 1e9;
}
// Caches, and how much of their work is timed.
struct Side {
  MakeCaches (*make)();
  std::int64_t layers;
  std::int64_t steps;
};

[[maybe_unused]] const bool kRegistered = [] {
  const auto both = [](const char* name, const auto& work, std::vector<std::int64_t> lengths,
                       std::int64_t iterations) {
    tools::register_both(name, work, Side{references, 1, 8}, Side{optimized_caches, kLayers, 512},
                         [&](benchmark::internal::Benchmark* one, bool) {
                           for (const std::int64_t length : lengths) one->Arg(length);
                           one->UseManualTime()->Iterations(iterations);
                         });
  };
  const auto decoded = [](Kind kind) {
    return [kind](benchmark::State& state, const Side& side) {
      decode(state, side.make(), kind, side.layers, state.range(0), side.steps);
    };
  };
  both("kv", decoded(Kind::kKv), {4'096, 32'768}, 1);
  both("ring", decoded(Kind::kRing), {4'096, 32'768}, 1);
  both(
      "prefill", [](auto& state, const Side& side) { prefill(state, side.make(), side.layers); },
      {0, 4'096}, 5);
  both(
      "snapshots", [](auto& state, const Side& side) { snapshots(state, side.make()); },
      {64, 4'096, 32'768}, 11);
  benchmark::RegisterBenchmark("optimized_kv_from_empty", optimized_kv_from_empty)
      ->Args({4'096, kLayers})
      ->Args({32'768, 8})
      ->UseManualTime()
      ->Iterations(1);
  return true;
}();

}  // namespace
}  // namespace kvo::snapshot
