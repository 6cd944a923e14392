// properties/replay/storable.hpp: tags for caches that store halves.
#pragma once

#include <cmath>
#include <span>

#include "properties/replay/lowering.hpp"

namespace kvo::replay {

/// What stands for a tag in a cache that stores elements of `type`: exact in that type, and other
/// than what stands for its neighbours.
[[nodiscard]] inline float storable(float tag, ElementType type) {
  // The largest primes that f16 and bf16 count up to in ones: prime, so that no row size divides
  // them.
  constexpr float kMostF16 = 2039;
  constexpr float kMostBf16 = 251;
  if (type == ElementType::kF32) return tag;
  return std::fmod(tag, type == ElementType::kF16 ? kMostF16 : kMostBf16);
}

/// The same for all elements of a tensor.
inline void make_storable(std::span<float> tags, ElementType type) {
  if (type == ElementType::kF32) return;
  for (float& tag : tags) tag = storable(tag, type);
}

}  // namespace kvo::replay
