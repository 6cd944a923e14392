#include "properties/campaign/generator.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

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

std::int64_t Draw::size(std::int64_t low, std::int64_t most) {
  constexpr std::uint64_t kFewPercent = 75;
  constexpr std::int64_t kFew = 5;
  if (percent(kFewPercent) || most - low <= kFew) return between(low, std::min(most, low + kFew));
  return edge(low, most);
}

std::int64_t Draw::edge(std::int64_t low, std::int64_t most) {
  std::int64_t first = 2;
  while ((std::int64_t{2} << first) <= low) ++first;
  std::int64_t last = first;
  while ((std::int64_t{2} << last) <= most) ++last;
  const std::int64_t power = std::int64_t{1} << between(first, last);
  return std::clamp(power + between(-1, 1), std::min(low, most), most);
}

OddValues::OddValues(std::uint64_t seed)
    : draw_(case_seed(seed, 0)), percent_(draw_.one_of<std::uint64_t>({0, 40})) {}

void OddValues::put_into(std::span<float> cells) {
  if (!cells.empty() && draw_.percent(percent_)) cells[draw_.below(cells.size())] = next();
}

float OddValues::next() {
  constexpr std::uint32_t kQuietNan = 0x7FC00000U;
  if (draw_.percent(40)) return -0.0F;
  if (draw_.percent(80)) return std::bit_cast<float>(kQuietNan + ++nans_);
  return draw_.one_of(
      {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::denorm_min()});
}

std::vector<std::uint64_t> swarm(Draw& draw, std::vector<std::uint64_t> usual,
                                 std::uint64_t always_first) {
  std::vector<bool> always(usual.size());
  for (std::size_t i = 0; i < usual.size(); ++i) always[i] = i < always_first;
  return swarm(draw, std::move(usual), always);
}

std::vector<std::uint64_t> swarm(Draw& draw, std::vector<std::uint64_t> usual,
                                 const std::vector<bool>& always) {
  constexpr std::uint64_t kOffPercent = 20;
  constexpr std::uint64_t kWildPercent = 15;
  constexpr std::uint64_t kWild = 6;
  for (std::size_t i = 0; i < usual.size(); ++i) {
    if (draw.percent(kWildPercent)) usual[i] *= kWild;
    if (draw.percent(kOffPercent) && !always[i]) usual[i] = 0;
  }
  return usual;
}

std::uint64_t case_seed(std::uint64_t seed, std::uint64_t index) {
  // splitmix64: neighbouring indices give unrelated seeds.
  std::uint64_t x = seed + (index + 1) * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

Schedule schedule_of(std::uint64_t own_seed) {
  return Schedule(own_seed >> 33U);
}

}  // namespace kvo
