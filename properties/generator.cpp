#include "properties/generator.hpp"

#include "properties/generators/generators.hpp"

namespace kvo {

std::size_t Draw::weighted(const std::vector<std::uint64_t>& weights) {
  std::uint64_t total = 0;
  for (const std::uint64_t weight : weights) total += weight;
  if (total == 0) return weights.size() - 1;
  std::uint64_t at = below(total);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (at < weights[i]) return i;
    at -= weights[i];
  }
  return weights.size() - 1;
}

std::vector<std::uint64_t> swarm(Draw& draw, std::vector<std::uint64_t> usual,
                                 std::uint64_t always_first) {
  constexpr std::uint64_t kOffPercent = 20;
  constexpr std::uint64_t kWildPercent = 15;
  constexpr std::uint64_t kWild = 6;
  for (std::size_t i = 0; i < usual.size(); ++i) {
    if (draw.percent(kWildPercent)) usual[i] *= kWild;
    if (draw.percent(kOffPercent) && i >= always_first) usual[i] = 0;
  }
  return usual;
}

const std::vector<Generator>& generators() {
  static const std::vector<Generator> kGenerators{
      layered_generator(),
      block_pool_generator(),
      contiguous_generator(),
      paged_generator(),
      device_generator(),
      tensor_generator(),
      tracing_generator(),
      context_generator(),
      positional_causal_generator(),
      positional_swa_generator(),
      positional_swa_mem_generator(),
      positional_chunked_generator(),
      positional_encoder_generator(),
      positional_wrapper_generator(),
  };
  return kGenerators;
}

const Generator* generator_of(const CacheKind& kind) {
  for (const Generator& generator : generators())
    if (generator.kind == &kind) return &generator;
  return nullptr;
}

std::uint64_t case_seed(std::uint64_t seed, std::uint64_t index) {
  // splitmix64: neighbouring indices give unrelated seeds.
  std::uint64_t x = seed + (index + 1) * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

}  // namespace kvo
