// start_forward with its mask, reference and optimized side by side, and memset of the same mask.
//
// The pool is filled to three quarters, the sequences' tokens one after another. Then passes follow
// until it is full: of batch 1 and 8 a decode step, one token each of as many sequences; of batch
// 512 a chunk of one sequence's prompt. `anew` takes the chunk back after each pass, so that no row
// of the mask can be kept; `window` is a sliding window over half the pool, which is never full.
// Only start_forward is timed.
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "optimized/positional/causal_cache.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/positional/causal_cache.hpp"
#include "tools/timed_in_turn.hpp"

namespace kvo {
namespace {

constexpr std::int64_t kChunk = 512;

// A cache with sequences of equal length.
class Filled {
 public:
  Filled(const positional::MakeCache& make, const positional::MemberOptions& member,
         std::int64_t cells, std::int64_t sequences)
      : lengths_(static_cast<std::size_t>(sequences)), bounded_(member.window > 0) {
    positional::CacheOptions options;
    options.members = {member};
    cache_ = make(options).value();
    KVO_CHECK(
        cache_
            ->init({.max_sequences = sequences, .capacity = cells / sequences, .max_batch = kChunk})
            .has_value());
    cells_ = cells;
    const std::int64_t wanted = cells * 3 / 4 / sequences;
    while (lengths_.front() < wanted) {
      for (std::size_t sequence = 0; sequence < lengths_.size(); ++sequence) add(sequence, 1);
      start();
    }
    filled_ = lengths_.front();
    const std::vector<float> row(static_cast<std::size_t>(sequences), 1);
    const positional::Rows rows{sequences, 1, 1, row};
    KVO_CHECK(cache_->put(rows, rows).has_value());
  }

  // The next batch of the benchmark; takes everything back when it would not fit.
  void plan(std::int64_t batch, bool anew) {
    if (anew || (!bounded_ && used_ + batch > cells_)) take_back();
    const std::int64_t tokens = batch == kChunk ? kChunk : 1;  // of a sequence
    for (std::int64_t i = 0; i < batch; i += tokens) {
      add(next_, tokens);
      next_ = (next_ + 1) % lengths_.size();
    }
  }

  // Carries out the planned batch; seconds.
  double start() {
    const positional::Batch batch{.positions = positions_, .sequences = sequences_};
    const double spent =
        tools::seconds([&] { KVO_CHECK(cache_->start_forward(batch).has_value()); });
    positions_.clear();
    sequences_.clear();
    return spent;
  }

  [[nodiscard]] std::int64_t mask_bytes() {
    const auto mask = cache_->get().value().mask;
    return mask->shape[0] * mask->shape[1] * std::int64_t{sizeof(float)};
  }

 private:
  void add(std::size_t sequence, std::int64_t tokens) {
    for (std::int64_t i = 0; i < tokens; ++i) {
      positions_.push_back(static_cast<std::int32_t>(lengths_[sequence]++));
      sequences_.push_back(static_cast<std::int64_t>(sequence));
    }
    used_ += tokens;
  }
  void take_back() {
    for (std::size_t sequence = 0; sequence < lengths_.size(); ++sequence) {
      KVO_CHECK(cache_
                    ->remove(static_cast<std::int64_t>(sequence),
                             static_cast<std::int32_t>(filled_), positional::kMaxPosition)
                    .has_value());
      lengths_[sequence] = filled_;
    }
    used_ = filled_ * std::ssize(lengths_);
    next_ = 0;
  }

  std::unique_ptr<positional::Cache> cache_;
  std::int64_t cells_ = 0;
  std::int64_t filled_ = 0;
  std::int64_t used_ = 0;
  std::vector<std::int64_t> lengths_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int64_t> sequences_;
  std::size_t next_ = 0;
  bool bounded_;  ///< by a window: it is never full
};

void start_forward(benchmark::State& state, const positional::MakeCache& make, bool anew,
                   const positional::MemberOptions& member = {}) {
  Filled cache(make, member, state.range(0), state.range(1));
  const std::int64_t batch = state.range(2);
  std::int64_t bytes = 0;
  for (auto _ : state) {
    cache.plan(batch, anew);
    state.SetIterationTime(cache.start());
    if (bytes == 0) bytes = cache.mask_bytes();
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
  KVO_CHECK(
      cache->init({.max_sequences = 1, .capacity = kChunk, .max_batch = kChunk, .storage = storage})
          .has_value());
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
