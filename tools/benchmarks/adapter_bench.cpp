// What the doors to caches in other languages cost: the same cache in this process, over a shared
// library of C, and over the protocol of adapters, one operation a request or 64.
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "properties/contracts.hpp"
#include "reference/layered/operations.hpp"
#include "tools/adapters/adapter.hpp"
#include "tools/adapters/library.hpp"
#include "tools/adapters/shared_memory.hpp"

namespace kvo::tools {
namespace {

constexpr std::size_t kBatch = 64;

const Subject& in_process_cache() {
  return *contracts().find_subject("layered.vector@optimized");
}
const Subject& in_a_child() {
  static const Subject kSubject =
      subjects_of_adapter(contracts(), KVO_COMMAND " adapter serve layered.vector@optimized").at(0);
  return kSubject;
}
const Subject& in_a_library() {
  static const Subject kSubject = subjects_of_library(contracts(), KVO_LIBRARY).at(0);
  return kSubject;
}

std::unique_ptr<Session> opened(const Subject& subject, std::uint64_t width) {
  auto session = subject.open(Setup{}).value();
  Probe probe;
  (void)session->apply(Op::of(layered::New{1, 1, width}), probe);
  return session;
}

void carry_out(benchmark::State& state, Session& session, const std::vector<Op>& ops,
               bool batches) {
  Probe probe;
  for (auto _ : state) {
    if (batches) session.expect(ops);
    for (const Op& op : ops) {
      const Observation seen = session.apply(op, probe);
      if (seen.error) return state.SkipWithError(seen.error->text().c_str());
      benchmark::DoNotOptimize(seen);
    }
  }
}

// Queries that return a number.
void small(benchmark::State& state, const Subject& subject, bool batches) {
  const auto session = opened(subject, 1);
  const std::vector<Op> ops(kBatch, Op::of(layered::Len{0}));
  carry_out(state, *session, ops, batches);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatch));
}

constexpr std::uint64_t kWidth = 16 * 1024;  // 64 KiB

// A row is appended and read again: one copy each way.
void rows(benchmark::State& state, const Subject& subject, bool batches,
          std::uint64_t width = kWidth) {
  constexpr std::size_t kRows = 8;  // a batch fits into the shared memory
  const auto session = opened(subject, width);
  const Tensor row = tensor_of({static_cast<std::int64_t>(width)}, std::vector<float>(width, 1));
  std::vector<Op> ops;
  for (std::size_t i = 0; i < kRows; ++i) {
    ops.push_back(Op::of(layered::Clear{0}));
    ops.push_back(Op::of(layered::Append{0, 0, row, row}));
    ops.push_back(Op::of(layered::Keys{0, 0}));
  }
  carry_out(state, *session, ops, batches);
  // K and V there, K back.
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(kRows * 3 * width * sizeof(float)));
}

void copied(benchmark::State& state) {
  constexpr std::size_t kBytes = 64 * 1024;
  std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kBytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kBytes));
}

constexpr std::size_t kRowsOfABatch = 24;

// The rows of a batch have different places, and do not fit into the cache together.
void copied_rows(benchmark::State& state) {
  constexpr std::size_t kBytes = 64 * 1024;
  const std::vector<char> from(kRowsOfABatch * kBytes, 1);
  std::vector<char> to(from.size());
  for (auto _ : state) {
    for (std::size_t at = 0; at < from.size(); at += kBytes) {
      std::memcpy(&to[at], &from[at], kBytes);
      benchmark::ClobberMemory();
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(from.size()));
}

// What a batch of rows cannot do without: each row is copied into the shared memory and out of it.
void copied_twice(benchmark::State& state) {
  SharedMemory harness(std::size_t{64} << 20U);
  const SharedMemory adapter(harness.file(), harness.bytes());
  const std::vector<std::byte> row(kWidth * sizeof(float), std::byte{1});
  std::vector<std::byte> to(row.size());
  for (auto _ : state) {
    harness.restart();
    std::array<std::size_t, kRowsOfABatch> places{};
    for (std::size_t& place : places) place = harness.put(row).value();
    for (const std::size_t place : places) {
      std::memcpy(to.data(), adapter.at(place, row.size()).data(), row.size());
      benchmark::ClobberMemory();
    }
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(kRowsOfABatch * row.size()));
}

BENCHMARK(copied)->Name("memcpy of 64 KiB");
BENCHMARK(copied_rows)->Name("memcpy of 24 different rows of 64 KiB");
BENCHMARK(copied_twice)->Name("24 rows of 64 KiB through shared memory alone");
BENCHMARK_CAPTURE(small, process, in_process_cache(), false)->Name("len, in process");
BENCHMARK_CAPTURE(small, library, in_a_library(), false)->Name("len, library");
BENCHMARK_CAPTURE(small, child, in_a_child(), false)
    ->Name("len, adapter one by one")
    ->UseRealTime();
BENCHMARK_CAPTURE(small, batch, in_a_child(), true)->Name("len, adapter in batches")->UseRealTime();
BENCHMARK_CAPTURE(rows, process, in_process_cache(), false)->Name("64 KiB rows, in process");
BENCHMARK_CAPTURE(rows, library, in_a_library(), false)->Name("64 KiB rows, library");
BENCHMARK_CAPTURE(rows, child, in_a_child(), false)
    ->Name("64 KiB rows, adapter one by one")
    ->UseRealTime();
BENCHMARK_CAPTURE(rows, batch, in_a_child(), true)
    ->Name("64 KiB rows, adapter in batches")
    ->UseRealTime();
// The same operations without a payload: what remains of the others is what tensors cost.
BENCHMARK_CAPTURE(rows, process_empty, in_process_cache(), false, 1)->Name("rows of 1, in process");
BENCHMARK_CAPTURE(rows, child_empty, in_a_child(), false, 1)
    ->Name("rows of 1, adapter one by one")
    ->UseRealTime();
BENCHMARK_CAPTURE(rows, batch_empty, in_a_child(), true, 1)
    ->Name("rows of 1, adapter in batches")
    ->UseRealTime();

}  // namespace
}  // namespace kvo::tools
