// properties/replay/storable.hpp: tags for caches that store halves.
#pragma once

#include <cmath>
#include <span>

#include "properties/replay/lowering.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/tensor.hpp"

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

/// What a cache shows of such tags, in its own type.
[[nodiscard]] inline Tensor as_stored(Tensor tags, ElementType type) {
  make_storable(tags.floats(), type);
  Tensor shown = make_tensor(tags.shape, dtype_of(static_cast<StorageType>(type)));
  show_stored({static_cast<StorageType>(type)}, tags.floats(), shown.bytes.data());
  return shown;
}

}  // namespace kvo::replay
