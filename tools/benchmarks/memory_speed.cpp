#include "tools/benchmarks/memory_speed.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <map>
#include <vector>

namespace kvo::tools {
namespace {

constexpr std::size_t kArena = std::size_t{64} << 20U;
constexpr std::size_t kSamples = 15;
constexpr std::size_t kBytesASample = std::size_t{4} << 20U;
constexpr std::size_t kMostCopies = 4096;

}  // namespace

double memcpy_nanoseconds(std::uint64_t bytes) {
  static std::map<std::size_t, double> known;
  if (bytes == 0) return 0;
  // Sizes are rounded to an eighth of a power of two, so that a run measures few of them.
  const std::uint64_t step = std::max<std::uint64_t>(std::bit_floor(bytes) / 8, 1);
  const auto size = static_cast<std::size_t>(
      std::min<std::uint64_t>((bytes + step / 2) / step * step, kArena / 2));
  const auto scale = static_cast<double>(bytes) / static_cast<double>(size);
  if (const auto found = known.find(size); found != known.end()) return found->second * scale;

  static std::vector<std::byte> arena(kArena, std::byte{1});
  const std::size_t copies = std::clamp<std::size_t>(kBytesASample / size, 1, kMostCopies);
  std::vector<double> samples;
  std::size_t at = 0;
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < copies; ++i) {
      at = at + 2 * size <= kArena / 2 ? at + size : 0;
      std::memcpy(arena.data() + kArena / 2 + at, arena.data() + at, size);
      asm volatile("" : : "r"(arena.data()) : "memory");
    }
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    samples.push_back(spent.count() / static_cast<double>(copies));
  }
  std::ranges::nth_element(samples, samples.begin() + kSamples / 2);
  return (known[size] = samples[kSamples / 2]) * scale;
}

}  // namespace kvo::tools
