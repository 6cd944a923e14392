// tools/benchmarks/timed_in_turn.hpp: calls timed in turn with copies of the same bytes, for
// benchmarks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
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

/// Registers `work` with the reference and with the optimized cache, as "referenceNAME" and
/// "optimizedNAME". `set` gets each benchmark, and true for the optimized one.
template <class Work, class Reference, class Optimized, class Set>
void register_both(const std::string& name, const Work& work, const Reference& reference,
                   const Optimized& optimized, const Set& set) {
  const auto add = [&](const std::string& whole, const auto& cache, bool is_optimized) {
    const auto run = [=](benchmark::State& state) { work(state, cache); };
    set(benchmark::RegisterBenchmark(whole.c_str(), run), is_optimized);
  };
  add("reference" + name, reference, false);
  add("optimized" + name, optimized, true);
}

/// Memory that memcpy writes to: so many sides, such as the keys and the values of each layer. Each
/// is allocated by itself; its pages were written before if `touched`.
class CopiedSides {
 public:
  CopiedSides(std::int64_t sides, std::int64_t bytes, bool touched = true)
      : from_(static_cast<std::size_t>(bytes), 2) {
    for (std::int64_t i = 0; i < sides; ++i) {
      to_.push_back(std::make_unique_for_overwrite<unsigned char[]>(from_.size()));  // NOLINT
      if (touched) std::memset(to_.back().get(), 1, from_.size());
    }
  }
  /// Writes a row to each side. The size is an argument, for memcpy of a known size is faster.
  void write(std::int64_t row, std::size_t row_bytes) const {
    for (const auto& side : to_)
      std::memcpy(side.get() + static_cast<std::size_t>(row) * row_bytes, from_.data(), row_bytes);
  }
  void write_all() const { write(0, from_.size()); }

 private:
  std::vector<unsigned char> from_;
  std::vector<std::unique_ptr<unsigned char[]>> to_;  // NOLINT(modernize-avoid-c-arrays)
};

/// Calls and copies that alternate, so that both have the same machine.
class TimedInTurn {
 public:
  template <class Copy>
  void time_copy(const Copy& copy) {
    copies_.push_back(seconds(copy));
  }
  template <class Call>
  void time_call(const Call& call) {
    calls_.push_back(seconds(call));
  }
  template <class Copy, class Call>
  void time(const Copy& copy, const Call& call) {
    time_copy(copy);
    time_call(call);
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
