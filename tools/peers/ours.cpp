// Our side of tools/peers/run: times one piece of work of an optimized cache, prints a line of
// JSON.
//
//   peers_ours append layered|contiguous|contiguous_heads
//   peers_ours mask CELLS SEQUENCES
//   peers_ours copy 1|8                (channels)
//   peers_ours request|life BLOCKS
//   peers_ours steps
//   peers_ours lookup|evict LEAVES
//
// Each piece begins with an untimed pass, so that all memory was touched. Medians, in nanoseconds.
// README.md says what each piece is; the peers' programs do the same, step by step.
#include "tools/peers/ours.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "optimized/block_pool/arena_pool.hpp"
#include "optimized/layered/arena_cache.hpp"
#include "optimized/positional/causal_cache.hpp"
#include "optimized/provider/contiguous_arena_cache.hpp"
#include "optimized/provider/paged_arena_cache.hpp"
#include "tools/benchmarks/positional_work.hpp"

namespace kvo::optimized {
namespace {

using peers::Measured;
using peers::Sum;
using peers::Work;

constexpr std::int64_t kLayers = 32;
constexpr std::int64_t kTokens = 512;
constexpr std::int64_t kWidth = std::int64_t{8} * 128;
constexpr std::int64_t kPositions = 4'095;
constexpr int kPasses = 5;

// What all programs write: whole numbers, exact in f32. Side 0 is K.
void fill(std::span<float> row, std::int64_t layer, std::int64_t side, std::int64_t token) {
  for (std::size_t i = 0; i < row.size(); ++i)
    row[i] = static_cast<float>(
        (layer * 977 + side * 389 + token * 131 + static_cast<std::int64_t>(i) * 7) % 8191);
}

// Times the tokens of several passes. The rows of a token are computed before, as a model does.
Measured append(std::span<Tensor> rows, const std::function<void()>& clear,
                const std::function<void(std::int64_t layer)>& put,
                const std::function<void()>& end, const std::function<void(Sum&)>& read) {
  Work work;
  for (int pass = 0; pass <= kPasses; ++pass) {
    clear();
    for (std::int64_t token = 0; token < kTokens; ++token) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        fill(rows[i].floats(), static_cast<std::int64_t>(i / 2), static_cast<std::int64_t>(i % 2),
             token);
      work.call(pass > 0, [&](Sum* /*sum*/) {
        for (std::int64_t layer = 0; layer < kLayers; ++layer) put(layer);
        end();
      });
    }
  }
  work.call(false, [&](Sum* sum) { read(*sum); });
  return work.measured();
}

// K and V of a token of each layer: layer 0's K, its V, layer 1's K ...
std::vector<Tensor> token_rows(std::int64_t channels) {
  return std::vector<Tensor>(2 * static_cast<std::size_t>(kLayers),
                             make_tensor({channels, 1, kWidth / channels}));
}

Measured append_layered() {
  const auto cache =
      LayeredArenaCache::make({kLayers, 8, 128}, static_cast<std::uint64_t>(kTokens), {}).value();
  auto rows = token_rows(1);
  layered::Append op;
  const auto put = [&](std::int64_t layer) {
    const auto at = static_cast<std::size_t>(layer);
    op.layer = at;
    std::swap(op.k, rows[2 * at]);
    std::swap(op.v, rows[2 * at + 1]);
    KVO_CHECK(cache->append(op).has_value());
    std::swap(op.k, rows[2 * at]);
    std::swap(op.v, rows[2 * at + 1]);
  };
  const auto read = [&](Sum& sum) {
    for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
      for (const float value : layered::floats_of(cache->k({.layer = layer}).value()))
        sum.add(value);
      for (const float value : layered::floats_of(cache->v({.layer = layer}).value()))
        sum.add(value);
    }
  };
  const auto end = [&] { KVO_CHECK(cache->advance().has_value()); };
  return append(
      rows, [&] { cache->clear(); }, put, end, read);
}

Measured append_contiguous(std::int64_t channels) {
  const auto cache = ContiguousArenaCache::make({kLayers, kTokens}, {}).value();
  auto rows = token_rows(channels);
  const auto put = [&](std::int64_t layer) {
    const auto at = static_cast<std::size_t>(layer);
    KVO_CHECK(cache->update(layer, {&rows[2 * at], &rows[2 * at + 1]}).has_value());
  };
  const auto read = [&](Sum& sum) {
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
      const auto got = cache->get(layer).value().value();
      sum.add(materialize(got.k));
      sum.add(materialize(got.v));
    }
  };
  return append(
      rows, [&] { KVO_CHECK(cache->truncate(0).has_value()); }, put, [] {}, read);
}

// The places of a mask where a token may look, of all others that it is minus infinity.
void add_mask(Sum& sum, const Tensor& mask) {
  for (const float value : mask.floats()) {
    KVO_CHECK(value == 0 || value == -std::numeric_limits<float>::infinity());
    sum.add(value == 0 ? 1.0F : 0.0F);
  }
}

// Decodes a token of each sequence until the pool is full.
Measured decode(std::int64_t cells, std::int64_t sequences) {
  positional::FilledPool pool(PositionalCausalCache::make, {}, cells, sequences);
  Work work;
  for (int pass = 0; pass <= 2; ++pass)
    for (std::int64_t used = cells / 4 * 3; used < cells; used += sequences) {
      pool.plan(sequences);
      work.call(pass > 0, [&](Sum* sum) {
        pool.start();
        if (sum != nullptr) add_mask(*sum, materialize(*pool.mask()));
      });
    }
  return work.measured();
}

Measured copy(std::int64_t channels) {
  const std::int64_t bytes = 2 * (kPositions + 1) * kWidth * std::int64_t{sizeof(float)};
  const block_pool::Geometry geometry{
      .num_layers = 1, .block_size = 16, .head_dim = kWidth, .max_memory_mb = (bytes >> 20) + 2};
  provider::PagedOptions options{.pool = ArenaPool::make(geometry, {}).value(), .num_layers = 1};
  options.owner = 1;
  const auto cache = PagedArenaCache::make(options, {}).value();
  Tensor k = make_tensor({channels, 1, kWidth / channels});
  Tensor v = k;
  for (std::int64_t token = 0; token < kPositions; ++token) {
    fill(k.floats(), 0, 0, token);
    fill(v.floats(), 0, 1, token);
    KVO_CHECK(cache->update(0, {&k, &v}).has_value());
  }
  Work work;
  work.call(false, [&](Sum* sum) {
    const auto got = cache->get(0).value().value();
    sum->add(materialize(got.k));
    sum->add(materialize(got.v));
  });
  for (int call = 0; call < 41; ++call)
    work.call(true, [&](Sum* /*sum*/) { KVO_CHECK(cache->get(0).value().has_value()); });
  return work.measured();
}

Measured measure(const std::vector<std::string>& words) {
  const auto number = [&](std::size_t at) { return std::stoll(words.at(at)); };
  if (words.at(0) == "mask") return decode(number(1), number(2));
  if (words.at(0) == "copy") return copy(number(1));
  if (words.at(0) != "append")
    return peers::measure_prefix(words.at(0), words.size() > 1 ? number(1) : 0);
  if (words.at(1) == "layered") return append_layered();
  return append_contiguous(words.at(1) == "contiguous" ? 1 : 8);
}

}  // namespace
}  // namespace kvo::optimized

int main(int argc, char** argv) {
  const auto measured = kvo::optimized::measure(std::vector<std::string>(argv + 1, argv + argc));
  std::printf("{\"ns\": %.1f, \"check\": %llu}\n", measured.ns,
              static_cast<unsigned long long>(measured.check));
  return EXIT_SUCCESS;
}
