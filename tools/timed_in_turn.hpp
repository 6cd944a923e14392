// tools/timed_in_turn.hpp: calls timed in turn with copies of the same bytes, for benchmarks.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace kvo::tools {

/// What a call takes.
template <class Call>
double seconds(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  benchmark::ClobberMemory();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline double median(std::vector<double> all) {
  std::ranges::nth_element(all, all.begin() + std::ssize(all) / 2);
  return all[all.size() / 2];
}

/// Registers `work` with the reference and with the optimized cache, as "reference_NAME" and
/// "optimized_NAME". `set` gets each benchmark, and true for the optimized one.
template <class Work, class Reference, class Optimized, class Set>
void register_both(const std::string& name, const Work& work, const Reference& reference,
                   const Optimized& optimized, const Set& set) {
  const auto add = [&](const std::string& whole, const auto& cache, bool is_optimized) {
    const auto run = [=](benchmark::State& state) { work(state, cache); };
    set(benchmark::RegisterBenchmark(whole.c_str(), run), is_optimized);
  };
  add("reference_" + name, reference, false);
  add("optimized_" + name, optimized, true);
}

/// Calls and copies that alternate, so that both have the same machine.
class TimedInTurn {
 public:
  template <class Copy, class Call>
  void time(const Copy& copy, const Call& call) {
    copies_.push_back(seconds(copy));
    calls_.push_back(seconds(call));
  }
  /// Leaves out what was timed first.
  void forget_first() {
    copies_.erase(copies_.begin());
    calls_.erase(calls_.begin());
  }

  [[nodiscard]] const std::vector<double>& calls() const { return calls_; }
  [[nodiscard]] const std::vector<double>& copies() const { return copies_; }

  /// Medians, and a copy over a call: the part of memcpy's speed.
  void report(benchmark::State& state) const {
    state.SetIterationTime(median(calls_));
    state.counters["ns"] = median(calls_) * 1e9;
    state.counters["memcpy_ns"] = median(copies_) * 1e9;
    state.counters["of_memcpy"] = median(copies_) / median(calls_);
  }

 private:
  std::vector<double> calls_;
  std::vector<double> copies_;
};

}  // namespace kvo::tools
