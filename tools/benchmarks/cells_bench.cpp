// Bookkeeping of `cells.kv`, reference and optimized side by side.
//
// Unified caches are filled to three quarters, the sequences' tokens in turn, so that no two
// neighbouring cells have one owner. `decode` places a token each of so many sequences; `mask` also
// writes their masks, and `set_memory` as many bytes by memset instead. `window` does the former
// under a sliding window in a cache that is full, where each token takes a cell that fell out of
// its owner's window. `shift` takes positions out of the middle of a sequence, moves those behind,
// and turns their keys; `share` gives a sequence's cells to another one. `copy` copies a sequence
// between streams, rows included. Only these calls are timed; what they use up is put back in
// between.
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>

#include "optimized/cells/caches.hpp"
#include "reference/cells/plain_caches.hpp"
#include "reference/contract/values/check.hpp"
#include "tools/benchmarks/timed_in_turn.hpp"

namespace kvo {
namespace {

constexpr std::int64_t kChunk = 128;  // tokens of a batch that fills
constexpr std::int32_t kDropped = 64;

// A cache whose sequences have equal lengths.
class FilledCells {
 public:
  FilledCells(const cells::MakeKv& make, const cells::KvOptions& options, std::int64_t sequences,
              std::int64_t length)
      : cache_(make(options).value()),
        lengths_(static_cast<std::size_t>(sequences)),
        cells_(options.size) {
    while (lengths_.back() < length) {
      for (std::int64_t i = 0; i < kChunk; ++i) add(i % sequences);
      decode(nullptr);
    }
    filled_ = lengths_.front();
  }

  cells::KvCache& cache() { return *cache_; }
  std::int64_t& length(std::int64_t seq) { return lengths_[static_cast<std::size_t>(seq)]; }
  [[nodiscard]] std::int64_t sequences() const { return std::ssize(lengths_); }

  // One more token of a sequence in the batch.
  void add(std::int64_t seq) {
    positions_.push_back(static_cast<std::int32_t>(length(seq)++));
    sequences_.push_back(seq);
    ends_.push_back(sequences_.size());
  }
  // A token each of the sequences whose turn it is.
  void add_in_turn(std::int64_t batch) {
    for (std::int64_t i = 0; i < batch; ++i) add(next_++ % sequences());
  }
  // Decodes the batch; seconds.
  double decode(const cells::SeeUbatch& see) {
    const cells::Batch batch{
        .positions = positions_, .sequences = sequences_, .ends = ends_, .n_ubatch = 512};
    const double spent =
        tools::seconds([&] { KVO_CHECK(cache_->decode(batch, see ? see : nothing_).has_value()); });
    positions_.clear();
    sequences_.clear();
    ends_.clear();
    return spent;
  }
  // Takes back what was added since the cache was filled, if so many tokens would not fit.
  void make_room(std::int64_t tokens) {
    if (std::accumulate(lengths_.begin(), lengths_.end(), tokens) <= cells_) return;
    for (std::int64_t seq = 0; seq < sequences(); ++seq) {
      KVO_CHECK(cache_->seq_rm(seq, static_cast<std::int32_t>(filled_), -1).has_value());
      length(seq) = filled_;
    }
    next_ = 0;
  }

 private:
  std::unique_ptr<cells::KvCache> cache_;
  std::vector<std::int64_t> lengths_;
  std::int64_t cells_;
  std::int64_t filled_ = 0;
  std::int64_t next_ = 0;
  std::vector<std::int32_t> positions_;
  std::vector<std::int64_t> sequences_;
  std::vector<std::size_t> ends_;
  cells::SeeUbatch nothing_ = [](const cells::PlacedUbatch& /*ubatch*/) {};
};

cells::KvOptions unified(std::int64_t size, std::int64_t sequences) {
  return {.size = size, .n_seq_max = sequences};
}

enum class Written : std::uint8_t { kNothing, kMask, kBytes };

// Unified, filled to three quarters, with room for so many more sequences.
FilledCells three_quarters(const benchmark::State& state, const cells::MakeKv& make,
                           std::int64_t more = 0) {
  const std::int64_t sequences = state.range(1);
  return {make, unified(state.range(0), sequences + more), sequences,
          state.range(0) * 3 / 4 / sequences};
}

void decode(benchmark::State& state, const cells::MakeKv& make, Written written) {
  FilledCells filled = three_quarters(state, make);
  const std::int64_t batch = state.range(2);
  std::vector<float> mask(static_cast<std::size_t>(batch * state.range(0)));
  const cells::SeeUbatch see = [&](const cells::PlacedUbatch& ubatch) {
    const auto entries = static_cast<std::size_t>(batch * ubatch.n_kv(cells::Half::kBase));
    if (written == Written::kMask)
      ubatch.mask(cells::Half::kBase, std::span<float>(mask).first(entries));
    else
      std::memset(mask.data(), 0xFF, entries * sizeof(float));
    benchmark::DoNotOptimize(mask.data());
  };
  for (auto _ : state) {
    filled.make_room(batch);
    filled.add_in_turn(batch);
    state.SetIterationTime(filled.decode(written == Written::kNothing ? nullptr : see));
  }
}

// Windows of half of what a sequence has when the cache is full.
void window(benchmark::State& state, const cells::MakeKv& make) {
  cells::KvOptions options = unified(state.range(0), state.range(1));
  const std::int64_t length = state.range(0) / state.range(1);
  options.window = {cells::WindowType::kStandard, static_cast<std::int32_t>(length / 2)};
  FilledCells filled(make, options, state.range(1), length + length / 8);
  for (auto _ : state) {
    filled.add_in_turn(state.range(2));
    state.SetIterationTime(filled.decode(nullptr));
  }
}

// Times `work` on one sequence after another; `put_back` undoes it.
template <class Work, class PutBack>
void sequences_in_turn(benchmark::State& state, std::int64_t sequences, const Work& work,
                       const PutBack& put_back) {
  std::int64_t seq = 0;
  for (auto _ : state) {
    state.SetIterationTime(tools::seconds([&] { work(seq); }));
    put_back(seq);
    seq = (seq + 1) % sequences;
  }
}

void shift(benchmark::State& state, const cells::MakeKv& make) {
  constexpr std::int32_t kKept = 4;
  FilledCells filled = three_quarters(state, make);
  const auto work = [&](std::int64_t seq) {
    KVO_CHECK(filled.cache().seq_rm(seq, kKept, kKept + kDropped).has_value());
    KVO_CHECK(filled.cache().seq_add(seq, kKept + kDropped, -1, -kDropped).has_value());
    KVO_CHECK(filled.cache().update());
  };
  sequences_in_turn(state, filled.sequences(), work, [&](std::int64_t seq) {
    filled.length(seq) -= kDropped;
    for (std::int32_t i = 0; i < kDropped; ++i) filled.add(seq);
    filled.decode(nullptr);
  });
}

void share(benchmark::State& state, const cells::MakeKv& make) {
  FilledCells filled = three_quarters(state, make, 1);
  const std::int64_t dst = state.range(1);
  const auto work = [&](std::int64_t seq) {
    KVO_CHECK(filled.cache().seq_cp(seq, dst, -1, -1).has_value());
  };
  sequences_in_turn(state, filled.sequences(), work, [&](std::int64_t /*seq*/) {
    KVO_CHECK(filled.cache().seq_rm(dst, -1, -1).has_value());
  });
}

void copy(benchmark::State& state, const cells::MakeKv& make) {
  cells::KvOptions options = unified(state.range(0) / state.range(1), state.range(1));
  options.unified = false;
  FilledCells filled(make, options, state.range(1) / 2, options.size * 3 / 4);
  const auto work = [&](std::int64_t seq) {
    KVO_CHECK(filled.cache().seq_cp(seq, seq + filled.sequences(), -1, -1).has_value());
    KVO_CHECK(filled.cache().update());
  };
  sequences_in_turn(state, filled.sequences(), work, [](std::int64_t /*seq*/) {});
}

// Cells, sequences, tokens of a batch.
void batches(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t cells : {4'096, 131'072})
    for (const std::int64_t tokens : {1, 64}) benchmark->Args({cells, 64, tokens});
}
void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t cells : {8'192, 131'072}) benchmark->Args({cells, 64});
}

// Fixed, so that each cache is filled once: that takes the reference longer than what is timed.
constexpr std::int64_t kFew = 32;
constexpr std::int64_t kMany = 4'096;

template <class Work>
void both(const char* name, const Work& work, void (*args)(benchmark::internal::Benchmark*),
          std::int64_t most = kMany) {
  tools::register_both(name, work, cells::make_plain_kv, optimized::make_kv_cells,
                       [=](benchmark::internal::Benchmark* one, bool is_optimized) {
                         one->Apply(args)->UseManualTime()->Iterations(is_optimized ? most : kFew);
                       });
}

template <Written kWritten>
void decoded(benchmark::State& state, const cells::MakeKv& make) {
  decode(state, make, kWritten);
}
void set_memory(benchmark::State& state) {
  decode(state, optimized::make_kv_cells, Written::kBytes);
}
BENCHMARK(set_memory)->Apply(batches)->UseManualTime()->Iterations(kFew * 4);

[[maybe_unused]] const bool kRegistered = [] {
  both("_decode", decoded<Written::kNothing>, batches);
  both("_mask", decoded<Written::kMask>, batches, kFew * 4);
  both("_window", window, batches);
  both("_shift", shift, sizes);
  both("_share", share, sizes);
  both("_copy", copy, sizes);
  return true;
}();

}  // namespace
}  // namespace kvo
