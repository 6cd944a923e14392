// Choices and probabilities are the same on every machine: with and without vector units, whatever
// the compiler and its options.
//
// This file is built twice: beside the libraries as they are, and beside the same sources compiled
// for vector units with fused multiply-add. Both must come to the numbers written here.
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "optimized/sampling/selecting_sampler.hpp"
#include "reference/sampling/pipeline.hpp"

#ifdef KVO_VECTOR_UNITS
#define KVO_SUITE SamplingNumbersWithVectorUnits
#else
#define KVO_SUITE SamplingNumbers
#endif

namespace kvo::optimized {
namespace {

using sampling::Random;
using sampling::Sampler;
using sampling::SamplingConfig;

constexpr int kRounds = 600;
constexpr std::uint64_t kFoldOfTokens = 7413530415806373166U;
constexpr std::uint64_t kFoldOfBits = 11322721399405236089U;

bool can_run() {
#ifdef KVO_VECTOR_UNITS
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
#else
  return true;
#endif
}

std::uint64_t folded(std::uint64_t fold, std::uint64_t more) {
  return std::rotl(fold, 5) ^ (more * 0x9E3779B97F4A7C15U);
}

Tensor random_row(Random& random) {
  const auto vocabulary = static_cast<std::int64_t>(1 + random.below(1500));
  Tensor row = make_tensor({1, 1, vocabulary});
  const std::uint64_t levels = random.chance(20) ? 5 : 1U << 20U;
  for (float& cell : row.floats())
    cell = static_cast<float>(random.below(levels)) / static_cast<float>(levels) * 20 - 10;
  return row;
}

SamplingConfig random_config(Random& random) {
  SamplingConfig config;
  config.temperature = 0.1 * static_cast<double>(random.below(20));
  if (random.chance(60)) config.top_k = static_cast<std::int64_t>(random.below(100));
  if (random.chance(60)) config.top_p = 0.01 * static_cast<double>(random.below(100));
  if (random.chance(50))
    config.repetition_penalty = 0.3 + 0.1 * static_cast<double>(random.below(20));
  return config;
}

// What a sampler chooses.
std::uint64_t tokens_of(const Sampler& sampler) {
  Random random(1);
  std::uint64_t fold = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Tensor row = random_row(random);
    const SamplingConfig config = random_config(random);
    std::vector<std::int64_t> generated(random.below(30));
    for (std::int64_t& id : generated) id = static_cast<std::int64_t>(random.below(1600)) - 1;
    const auto token = sampler.sample(view_of(row), config, generated, random);
    fold = folded(fold, static_cast<std::uint64_t>(token.value()));
  }
  return fold;
}

// The bits of probabilities.
std::uint64_t bits_of(const Sampler& sampler) {
  Random random(2);
  std::uint64_t fold = 0;
  for (int round = 0; round < kRounds / 10; ++round) {
    const Tensor row = random_row(random);
    std::vector<double> logits(row.floats().begin(), row.floats().end());
    sampler.apply_temperature(logits, 0.7);
    for (const double probability : sampler.softmax(logits))
      fold = folded(fold, std::bit_cast<std::uint64_t>(probability));
  }
  return fold;
}

TEST(KVO_SUITE, TokensAreTheSameEverywhere) {
  if (!can_run()) GTEST_SKIP() << "no such vector units";
  const QuirkSet<sampling::Quirk> quirks(Profile::kDocumented);
  EXPECT_EQ(tokens_of(*sampling::make_pipeline(quirks)), kFoldOfTokens);
  EXPECT_EQ(tokens_of(SelectingSampler(quirks)), kFoldOfTokens);
}

TEST(KVO_SUITE, ProbabilitiesHaveTheSameBitsEverywhere) {
  if (!can_run()) GTEST_SKIP() << "no such vector units";
  const QuirkSet<sampling::Quirk> quirks(Profile::kDocumented);
  EXPECT_EQ(bits_of(*sampling::make_pipeline(quirks)), kFoldOfBits);
  EXPECT_EQ(bits_of(SelectingSampler(quirks)), kFoldOfBits);
}

}  // namespace
}  // namespace kvo::optimized
