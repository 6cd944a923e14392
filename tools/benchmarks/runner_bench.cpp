// What the harness itself costs: the reference against itself on small rows, one thread.
//
// overhead_ns is the time of a step less the time inside the two caches, divided by two: what one
// operation on one subject costs beyond the cache's own work (the clock, the observation,
// comparing). In a worker it also records the active subject, and a case costs one request between
// two processes.
#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include "properties/contracts.hpp"
#include "properties/runner/lockstep.hpp"
#include "properties/runner/pulse.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/layered/cache.hpp"
#include "reference/provider/contiguous.hpp"
#include "tools/workers/process.hpp"

namespace kvo {
namespace {

constexpr std::int64_t kTokens = 512;
constexpr std::int64_t kRow = 4;  // elements

std::vector<Op> layered_ops() {
  Tagger tagger;
  std::vector<Op> ops{Op::of(layered::WithCapacity{1, 1, kRow, kTokens})};
  for (std::int64_t token = 0; token < kTokens; ++token) {
    auto [k, v] = tagger.pair({kRow});
    ops.push_back(Op::of(layered::Append{0, 0, std::move(k), std::move(v)}));
    ops.push_back(Op::of(layered::Advance{0}));
    ops.push_back(Op::of(layered::Len{0}));
  }
  return ops;
}

std::vector<Op> contiguous_ops() {
  Tagger tagger;
  std::vector<Op> ops{Op::of(provider::NewContiguous{0, 1, kTokens})};
  for (std::int64_t token = 0; token < kTokens; ++token) {
    auto [k, v] = tagger.pair({1, 1, kRow});
    ops.push_back(Op::of(provider::Update{0, 0, std::move(k), std::move(v)}));
    ops.push_back(Op::of(provider::SeqLen{0}));
    ops.push_back(Op::of(provider::Truncate{0, token + 1}));
  }
  return ops;
}

void lockstep(benchmark::State& state, const CacheKind& kind, const std::vector<Op>& ops) {
  const std::array<const Subject*, 1> subject{&contracts().reference_of(kind)};
  std::uint64_t inside = 0;
  std::uint64_t wall = 0;
  for (auto _ : state) {
    Lockstep run(subject.front(), subject, {});
    const auto start = std::chrono::steady_clock::now();
    for (const Op& op : ops) benchmark::DoNotOptimize(run.step(op));
    wall += static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
    inside += run.baseline()->timings.total_nanoseconds() +
              run.participants().front().timings.total_nanoseconds();
  }
  const auto steps = static_cast<double>(ops.size()) * static_cast<double>(state.iterations());
  state.counters["ops_per_second"] = benchmark::Counter(steps, benchmark::Counter::kIsRate);
  state.counters["overhead_ns"] = static_cast<double>(wall - inside) / steps / 2;
  state.counters["inside_ns"] = static_cast<double>(inside) / steps / 2;
}

void layered_small_rows(benchmark::State& state) {
  lockstep(state, layered::vector_kind(), layered_ops());
}
BENCHMARK(layered_small_rows);

// As a worker does, whose pulse another process can read.
void layered_small_rows_in_a_worker(benchmark::State& state) {
  void* shared =
      mmap(nullptr, sizeof(Pulse), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  KVO_CHECK(shared != MAP_FAILED);
  told_pulse = new (shared) Pulse;
  lockstep(state, layered::vector_kind(), layered_ops());
  told_pulse = nullptr;
  munmap(shared, sizeof(Pulse));
}
BENCHMARK(layered_small_rows_in_a_worker);

// A case of nothing: its index goes in, a record of 1 KiB comes out.
void case_of_a_worker(benchmark::State& state) {
  constexpr std::size_t kRecord = 1024;
  tools::Process process(
      [](std::string_view) {
        return tools::Message{tools::Message::Kind::kAnswer, std::string(kRecord, 'x')};
      },
      {});
  for (auto _ : state) {
    process.ask("7");
    KVO_CHECK(process.wait() == tools::Process::State::kAnswered);
    benchmark::DoNotOptimize(process.take_answer());
  }
}
BENCHMARK(case_of_a_worker)->UseRealTime();

void contiguous_small_rows(benchmark::State& state) {
  lockstep(state, provider::contiguous_kind(), contiguous_ops());
}
BENCHMARK(contiguous_small_rows);

}  // namespace
}  // namespace kvo
