// The prefix trie, reference and optimized side by side, over layers that keep nothing.
//
// Stored are prefixes of 512 to 767 tokens, in groups that share their first 256, and a prompt of
// 100,000 tokens, as one edge or with a restore point each 512. The first number of a name is that
// of prefixes. `compare_memory` is memcmp over the bytes of a request that memcmp finds equal: what
// any search must read. What fills a trie is not timed.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <time.h>

#include "optimized/snapshot/prefix_counted_layer.hpp"
#include "optimized/snapshot/prefix_trie.hpp"
#include "optimized/snapshot/token_match.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/snapshot/make_trie.hpp"

namespace kvo {
namespace {

using optimized::CountedLayer;
using snapshot::PrefixTrie;
using snapshot::Tokens;

constexpr std::int64_t kShared = 256;
constexpr std::int64_t kGroups = 16;
constexpr std::int64_t kLong = 100'000;
constexpr std::int64_t kChunk = 512;
constexpr std::int32_t kVocabulary = 32'000;
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60U;

Tokens drawn(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  Tokens tokens(static_cast<std::size_t>(count));
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(engine() % kVocabulary);
  return tokens;
}

// The prefix of a number, the same each time.
Tokens prefix(std::int64_t number) {
  const auto at = static_cast<std::uint64_t>(number);
  Tokens tokens = drawn(kShared, at % kGroups);
  const Tokens own = drawn(kShared + static_cast<std::int64_t>(at * 7 % kShared), 1000 + at);
  tokens.insert(tokens.end(), own.begin(), own.end());
  return tokens;
}
Tokens long_prompt(bool in_chunks) {
  return drawn(kLong, in_chunks ? 500 : 501);
}

// A session: what is not known is evaluated, and all is filed.
void file(PrefixTrie& trie, const Tokens& inputs) {
  const auto begun = trie.begin(inputs);
  KVO_CHECK(begun.has_value());
  CountedLayer::feed(trie, std::ssize(begun->remaining));
  KVO_CHECK(trie.close().has_value());
}

// The same with a restore point each kChunk tokens, which become nodes.
void file_in_chunks(PrefixTrie& trie, const Tokens& inputs) {
  KVO_CHECK(trie.begin(inputs).has_value());
  for (std::int64_t at = 0; at < std::ssize(inputs); at += kChunk) {
    CountedLayer::feed(trie, std::min(kChunk, std::ssize(inputs) - at));
    KVO_CHECK(trie.snapshot(true).has_value());
  }
  KVO_CHECK(trie.close().has_value());
}

struct Filled {
  std::unique_ptr<PrefixTrie> trie;
  std::int64_t prefixes = 0;
  double tokens = 0;               ///< bytes of distinct tokens that were filed
  double heap_per_token_byte = 0;  ///< once it was filled
};

// Seconds of this thread, because the machine may be shared.
double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double heap_bytes() {
  const auto now = mallinfo2();
  return static_cast<double>(now.uordblks + now.hblkhd);
}

// Filled once; what a benchmark adds, or evicts, stays.
Filled& filled(const char* variant, const snapshot::MakeTrie& make, std::int64_t prefixes) {
  static std::map<std::pair<std::string, std::int64_t>, Filled> all;
  Filled& one = all[{variant, prefixes}];
  if (one.trie) return one;
  const double before = heap_bytes();
  snapshot::Layers layers;
  layers.push_back(std::make_unique<CountedLayer>());
  one.trie = make(std::move(layers), kNoLimit, QuirkSet<snapshot::Quirk>());
  std::int64_t tokens = 2 * kLong + kGroups * kShared;
  for (; one.prefixes < prefixes; ++one.prefixes) {
    const Tokens inputs = prefix(one.prefixes);
    tokens += std::ssize(inputs) - kShared;
    file(*one.trie, inputs);
  }
  file(*one.trie, long_prompt(false));
  file_in_chunks(*one.trie, long_prompt(true));
  file(*one.trie, Tokens{1});
  one.tokens = static_cast<double>(tokens) * sizeof(std::int32_t);
  one.heap_per_token_byte = (heap_bytes() - before) / one.tokens;
  return one;
}
using FilledOf = Filled& (*)(const benchmark::State& state);
Filled& reference_of(const benchmark::State& state) {
  return filled("reference", snapshot::make_trie, state.range(0));
}
Filled& optimized_of(const benchmark::State& state) {
  return filled("optimized", optimized::make_prefix_trie, state.range(0));
}
// ---- Match ----

using Requests = std::vector<Tokens> (*)(const benchmark::State& state);
std::vector<Tokens> stored_prefixes(const benchmark::State& state) {
  const auto prefixes = static_cast<std::uint64_t>(state.range(0));
  std::vector<Tokens> requests;
  for (std::uint64_t i = 0; i < 256; ++i)
    requests.push_back(prefix(static_cast<std::int64_t>(i * 7919 % prefixes)));
  return requests;
}
std::vector<Tokens> one_long_prompt(const benchmark::State& state) {
  return {long_prompt(state.range(1) != 0)};
}

template <class Match>
void time_matches(benchmark::State& state, const std::vector<Tokens>& requests,
                  const Match& match) {
  std::size_t at = 0;
  for (auto _ : state) {
    const Tokens& request = requests[at++ % requests.size()];
    KVO_CHECK(match(request) == std::ssize(request));
  }
}
void match_by_find(benchmark::State& state, FilledOf filled_of, Requests requests) {
  const PrefixTrie& trie = *filled_of(state).trie;
  time_matches(state, requests(state),
               [&](const Tokens& tokens) { return trie.find(tokens).matched; });
}
void match_alone(benchmark::State& state, Requests requests) {
  const auto& trie = dynamic_cast<const optimized::RadixPrefixTrie&>(*optimized_of(state).trie);
  time_matches(state, requests(state), [&](const Tokens& tokens) { return trie.matched(tokens); });
}
void match_reference(benchmark::State& state) {
  match_by_find(state, reference_of, stored_prefixes);
  state.counters["heap/tokens"] = reference_of(state).heap_per_token_byte;
}
void match_optimized(benchmark::State& state) {
  match_alone(state, stored_prefixes);
  state.counters["heap/tokens"] = optimized_of(state).heap_per_token_byte;
}

template <class Equal>
void compare(benchmark::State& state, const Equal& equal) {
  const Tokens ours = drawn(state.range(0), 1);
  const Tokens theirs = ours;
  benchmark::DoNotOptimize(theirs.data());
  benchmark::DoNotOptimize(ours.data());
  for (auto _ : state) KVO_CHECK(equal(ours, theirs));
}
bool equal_memory(const Tokens& ours, const Tokens& theirs) {
  benchmark::ClobberMemory();  // else it is done once
  return std::memcmp(ours.data(), theirs.data(), ours.size() * sizeof(ours[0])) == 0;
}
bool equal_blocks(const Tokens& ours, const Tokens& theirs) {
  return optimized::matched_tokens(ours, theirs) == std::ssize(ours);
}
bool equal_by_token(const Tokens& ours, const Tokens& theirs) {
  return std::ranges::mismatch(ours, theirs).in1 == ours.end();
}

// ---- begin ----

// To and fro between a stored prompt of 100,000 tokens and another path.
void begin_long(benchmark::State& state, FilledOf filled_of) {
  PrefixTrie& trie = *filled_of(state).trie;
  const Tokens request = long_prompt(true);
  for (auto _ : state) {
    const double start = seconds();
    const auto begun = trie.begin(request);
    state.SetIterationTime(seconds() - start);
    KVO_CHECK(begun && std::ssize(begun->remaining) == 1);
    KVO_CHECK(trie.begin(Tokens{1, 2}).has_value());
  }
}
// ---- Insert and evict ----

// Sessions with new prefixes, each from begin to close.
void insert(benchmark::State& state, FilledOf filled_of) {
  Filled& one = filled_of(state);
  for (auto _ : state) {
    const Tokens inputs = prefix(one.prefixes++);
    one.tokens += static_cast<double>((inputs.size() - kShared) * sizeof(std::int32_t));
    const double start = seconds();
    file(*one.trie, inputs);
    state.SetIterationTime(seconds() - start);
  }
}
// The same where each takes the place of others, which are evicted. A snapshot counts for as many
// bytes as its tokens.
void insert_full(benchmark::State& state, FilledOf filled_of) {
  Filled& one = filled_of(state);
  one.trie->set_limit(static_cast<std::int64_t>(one.tokens));
  insert(state, filled_of);
  one.trie->set_limit(kNoLimit);
}

[[maybe_unused]] const bool kRegistered = [] {
  using Benchmark = benchmark::internal::Benchmark;
  const auto add = [](const std::string& name, const auto&... work) {
    return benchmark::RegisterBenchmark(name.c_str(), work...)->Unit(benchmark::kMicrosecond);
  };
  const auto lengths = [](Benchmark* one) { one->Arg(2 * kShared)->Arg(kLong); };
  const auto sizes = [](Benchmark* one) { one->Arg(1'000)->Arg(10'000)->Arg(100'000); };
  // The second number: whether the prompt is in chunks.
  const auto long_prompts = [](Benchmark* one) {
    for (const std::int64_t prefixes : {1'000, 10'000, 100'000})
      one->Args({prefixes, 0})->Args({prefixes, 1});
  };
  lengths(add("compare_memory", compare<decltype(equal_memory)>, equal_memory));
  lengths(add("compare_blocks", compare<decltype(equal_blocks)>, equal_blocks));
  lengths(add("compare_by_token", compare<decltype(equal_by_token)>, equal_by_token));
  sizes(add("match_optimized", match_optimized));
  sizes(add("match_optimized_find", match_by_find, optimized_of, stored_prefixes));
  sizes(add("match_reference", match_reference));
  long_prompts(add("match_long_optimized", match_alone, one_long_prompt));
  long_prompts(add("match_long_reference", match_by_find, reference_of, one_long_prompt));
  const auto both = [&](const std::string& name, const auto& work, std::int64_t iterations) {
    for (const auto& [which, filled_of] :
         {std::pair("_optimized", &optimized_of), std::pair("_reference", &reference_of)}) {
      Benchmark* one = add(name + which, work, filled_of)->UseManualTime();
      sizes(one);
      if (iterations > 0) one->Iterations(iterations);
    }
  };
  both("begin_long", begin_long, 0);
  both("insert", insert, 100);  // as many as leave the size what the name says
  both("insert_full", insert_full, 100);
  return true;
}();

}  // namespace
}  // namespace kvo
