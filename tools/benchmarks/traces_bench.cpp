// Reading a trace in Mooncake's format, and its figures: a made-up trace of 20,000 requests, with
// the lengths of its conversation trace, one thread.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "reference/contract/values/check.hpp"
#include "traces/figures/generate.hpp"
#include "traces/figures/statistics.hpp"
#include "traces/formats/formats.hpp"
#include "traces/formats/mooncake.hpp"

namespace kvo::traces {
namespace {

const std::vector<Request>& requests() {
  static const std::vector<Request> kRequests = generate({.requests = 20'000,
                                                          .mean_turn_tokens = 6'000,
                                                          .mean_output_tokens = 343,
                                                          .max_input_tokens = 126'195})
                                                    .value();
  return kRequests;
}

void read_mooncake(benchmark::State& state) {
  std::string text;
  for (const Request& request : requests()) text += to_mooncake_line(request) + "\n";
  for (auto _ : state) {
    const auto reader = open_trace(TextSource::in_memory("made up", text), "mooncake");
    KVO_CHECK(reader.has_value());
    const auto read = read_all(**reader);
    KVO_CHECK(read.has_value() && read->size() == requests().size());
  }
  state.counters["mb_per_second"] = benchmark::Counter(
      static_cast<double>(text.size()) / 1e6, benchmark::Counter::kIsIterationInvariantRate);
}

void three_capacities(benchmark::State& state) {
  constexpr std::array<std::uint64_t, 3> kCapacities{1'000, 10'000, 50'000};
  std::uint64_t references = 0;
  for (auto _ : state) {
    StatisticsCounter counter(kCapacities);
    for (const Request& request : requests()) counter.add(request);
    references = counter.result().block_references;
  }
  state.counters["million_references_per_second"] = benchmark::Counter(
      static_cast<double>(references) / 1e6, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(read_mooncake)->Unit(benchmark::kMillisecond);
BENCHMARK(three_capacities)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvo::traces
