// The samplers of contract `sampling`: reference, optimized, and passes over the same logits.
//
// A step chooses one token of 128,000, whose logits are normally distributed as far as twelve
// uniform numbers make them so. Reference, optimized and passes alternate, so that all have the
// same machine, and each takes the next of 32 rows (16 MiB), so that none finds in the cache what
// another has just read. `pass_ns` is one pass that finds the largest logit of each block with
// vector instructions, `loop_ns` one that finds the largest of all in a plain loop. Counters are
// medians. On every row reference and optimized must choose the same token.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "optimized/sampling/selection.hpp"
#include "optimized/subjects.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/sampling/pipeline.hpp"
#include "tools/benchmarks/timed_in_turn.hpp"

namespace kvo::sampling {
namespace {

using tools::median;
using tools::seconds;

constexpr std::int64_t kVocabulary = 128'000;
constexpr std::size_t kRows = 32;
constexpr std::size_t kGenerated = 512;

double normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform(random);
  return sum;
}

struct Inputs {
  std::vector<Tensor> rows;
  std::vector<std::int64_t> generated;
};

Inputs make_inputs() {
  Random random(1);
  Inputs inputs;
  for (std::size_t i = 0; i < kRows; ++i) {
    inputs.rows.push_back(make_tensor({1, 1, kVocabulary}));
    for (float& cell : inputs.rows.back().floats()) cell = static_cast<float>(4 * normal(random));
  }
  for (std::size_t i = 0; i < kGenerated; ++i)
    inputs.generated.push_back(static_cast<std::int64_t>(random.below(kVocabulary)));
  return inputs;
}

double pass(std::span<const float> row) {
  return seconds([&] {
    double largest = optimized::Blocks<float>(row).largest();
    benchmark::DoNotOptimize(largest);
  });
}

double loop(std::span<const float> row) {
  return seconds([&] {
    float largest = row.front();
    for (const float cell : row)
      if (cell > largest) largest = cell;
    benchmark::DoNotOptimize(largest);
  });
}

void choose(benchmark::State& state, const SamplingConfig& config) {
  const Inputs inputs = make_inputs();
  const QuirkSet<Quirk> quirks(Profile::kDocumented);
  const auto reference = make_pipeline(quirks);
  const auto fast = optimized::make_selecting_sampler(quirks);
  std::vector<double> slow_steps;
  std::vector<double> fast_steps;
  std::vector<double> passes;
  std::vector<double> loops;
  std::uint64_t step = 0;
  const auto row = [&](std::uint64_t at) -> const Tensor& { return inputs.rows[at % kRows]; };
  const auto choose_from = [&](const Sampler& sampler, std::uint64_t at) {
    Random random(at);
    return *sampler.sample(view_of(row(at)), config, inputs.generated, random);
  };
  for (auto _ : state) {
    slow_steps.push_back(seconds([&] { benchmark::DoNotOptimize(choose_from(*reference, step)); }));
    const std::uint64_t other = step + kRows / 2;
    fast_steps.push_back(seconds([&] { benchmark::DoNotOptimize(choose_from(*fast, other)); }));
    passes.push_back(pass(row(step + kRows / 4).floats()));
    loops.push_back(loop(row(step + 3 * kRows / 4).floats()));
    ++step;
  }
  for (std::uint64_t at = 0; at < kRows; ++at)
    KVO_CHECK(choose_from(*reference, at) == choose_from(*fast, at));
  const double fast_step = median(fast_steps);
  state.counters["ns"] = fast_step * 1e9;
  state.counters["reference_ns"] = median(slow_steps) * 1e9;
  state.counters["times_faster"] = median(slow_steps) / fast_step;
  state.counters["pass_ns"] = median(passes) * 1e9;
  state.counters["passes"] = fast_step / median(passes);
  state.counters["loop_ns"] = median(loops) * 1e9;
  state.counters["loops"] = fast_step / median(loops);
}

const SamplingConfig kTopKAndP{
    .temperature = 0.8, .top_k = 40, .top_p = 0.95, .repetition_penalty = 1.1};

BENCHMARK_CAPTURE(choose, top_k_top_p_penalty, kTopKAndP);
BENCHMARK_CAPTURE(choose, top_k_top_p, {.temperature = 0.8, .top_k = 40, .top_p = 0.95});
BENCHMARK_CAPTURE(choose, top_k_1000, {.temperature = 0.8, .top_k = 1000});
BENCHMARK_CAPTURE(choose, top_p, {.temperature = 0.8, .top_p = 0.95});
BENCHMARK_CAPTURE(choose, all, {.temperature = 0.8});
BENCHMARK_CAPTURE(choose, greedy, {.temperature = 0});
BENCHMARK_CAPTURE(choose, greedy_penalty, {.temperature = 0, .repetition_penalty = 1.1});

}  // namespace
}  // namespace kvo::sampling
