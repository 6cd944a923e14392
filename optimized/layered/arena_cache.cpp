#include "optimized/layered/arena_cache.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace kvo::optimized {

using layered::Behaviour;
using layered::Build;
using layered::Cache;
using layered::Geometry;
using layered::Quirk;

Result<std::unique_ptr<Cache>> LayeredArenaCache::make(const Geometry& geometry,
                                                       std::optional<std::uint64_t> max_seq_len,
                                                       const Behaviour& behaviour) {
  if (!behaviour.quirks.has(Quirk::kSizesUnchecked)) {
    const auto entry = layered::entry_elements(geometry, behaviour);
    if (!entry) return entry.error();
  }
  std::uint64_t reserved = 0;
  if (max_seq_len) {
    const auto elements = layered::reserved_elements(geometry, *max_seq_len, behaviour);
    if (!elements) return elements.error();
    reserved = *elements;
  }
  auto cache = std::make_unique<LayeredArenaCache>(geometry, behaviour);
  for (std::uint64_t layer = 0; reserved > 0 && layer < geometry.num_layers; ++layer)
    cache->reserve(layer, {reserved, reserved});
  return cache;
}

Status LayeredArenaCache::append(std::uint64_t layer, std::span<const float> k,
                                 std::span<const float> v) {
  if (Status good = check(layer, k, v); !good) return good;
  Layer& to = layers_[layer];
  auto& [keys, values] = to.sides;
  if (keys.capacity - keys.size < k.size() || values.capacity - values.size < v.size())
    reserve(layer, {keys.size + k.size(), values.size + v.size()});
  // The library's: the compiler makes a loop of 16 bytes a turn of std::copy.
  if (!k.empty()) std::memcpy(keys.data() + keys.size, k.data(), k.size_bytes());
  if (!v.empty()) std::memcpy(values.data() + values.size, v.data(), v.size_bytes());
  keys.size += k.size();
  values.size += v.size();
  ++to.pending;
  return {};
}

Status LayeredArenaCache::check(std::uint64_t layer, std::span<const float> k,
                                std::span<const float> v) const {
  if (!has(Quirk::kLayerAborts) && layer >= layers_.size()) return no_layer(layer);
  const bool unchecked = has(Quirk::kLengthsUnchecked);
  if (!unchecked || behaviour_.build == Build::kDebug) {
    const auto entry = layered::entry_elements(geometry_, behaviour_);
    if (!entry) return entry.error();
    const Code code = unchecked ? Code::kPrecondition : Code::kBadShape;
    if (k.size() != *entry) return fail(code, "k");
    if (v.size() != *entry) return fail(code, "v");
  }
  if (layer >= layers_.size()) return no_layer(layer);
  if (layers_[layer].pending > 0 && !has(Quirk::kSecondAppendTaken))
    return fail(Code::kPrecondition, "appended");
  return {};
}

void LayeredArenaCache::reserve(std::uint64_t layer, std::array<std::size_t, 2> needed) {
  auto& sides = layers_[layer].sides;
  std::array<Side, 2> larger = sides;
  for (const std::size_t which : {0U, 1U})
    if (sides[which].capacity < needed[which]) {
      // Places grow in large steps, since room that is not written costs no pages.
      const std::size_t step = sides[which].capacity < kArenaCells ? 4 : 2;
      larger[which] = moved(sides[which], needed[which], step * sides[which].capacity);
    }
  sides = std::move(larger);  // both or none
}

LayeredArenaCache::Side LayeredArenaCache::moved(const Side& old, std::size_t needed,
                                                 std::size_t wanted) {
  // Another side that grew before this one has left places that fit.
  const bool fits = arena_.has_room() && arena_.buffer_cells >= needed;
  const std::size_t capacity = fits ? arena_.buffer_cells : std::max(needed, wanted);
  Side side{arena_.take(capacity, 2 * layers_.size()), old.size, capacity};
  std::copy_n(old.data(), old.size, side.data());
  return side;
}

Status LayeredArenaCache::advance() {
  if (!has(Quirk::kAdvanceUnchecked) &&
      std::ranges::any_of(layers_, [](const Layer& layer) { return layer.pending != 1; }))
    return fail(Code::kPrecondition, "a layer lacks this token");
  for (Layer& layer : layers_) layer.pending = 0;
  ++len_;
  return {};
}

Result<std::span<const float>> LayeredArenaCache::side(std::uint64_t layer,
                                                       std::size_t which) const {
  if (layer >= layers_.size()) return no_layer(layer);
  const Side& from = layers_[layer].sides[which];
  return std::span<const float>(from.data(), from.size);
}

void LayeredArenaCache::clear() {
  for (Layer& layer : layers_) {
    for (Side& side : layer.sides) side.size = 0;
    layer.pending = 0;
  }
  len_ = 0;
}

std::unique_ptr<Cache> LayeredArenaCache::clone() const {
  auto copy = std::make_unique<LayeredArenaCache>(geometry_, behaviour_);
  copy->len_ = len_;
  for (std::uint64_t layer = 0; layer < layers_.size(); ++layer) {
    copy->layers_[layer].pending = layers_[layer].pending;
    for (const std::size_t which : {0U, 1U}) {
      const Side& from = layers_[layer].sides[which];
      if (from.size > 0)
        copy->layers_[layer].sides[which] = copy->moved(from, from.size, from.size);
    }
  }
  return copy;
}

Error LayeredArenaCache::no_layer(std::uint64_t layer) const {
  return fail(has(Quirk::kLayerAborts) ? Code::kPrecondition : Code::kOutOfRange,
              "layer " + std::to_string(layer) + " of " + std::to_string(layers_.size()));
}

}  // namespace kvo::optimized
