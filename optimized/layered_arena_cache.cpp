#include "optimized/layered_arena_cache.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "optimized/arena.hpp"

namespace kvo::optimized {

using layered::Cache;
using layered::Geometry;
using layered::Mode;

Result<std::unique_ptr<Cache>> LayeredArenaCache::make(const Geometry& geometry,
                                                       std::optional<std::uint64_t> max_seq_len,
                                                       Mode mode) {
  if (mode == Mode::kDocumented) {
    const auto entry = layered::entry_elements(geometry, mode);
    if (!entry) return entry.error();
  }
  std::uint64_t reserved = 0;
  if (max_seq_len) {
    const auto elements = layered::reserved_elements(geometry, *max_seq_len, mode);
    if (!elements) return elements.error();
    reserved = *elements;
  }
  auto cache = std::make_unique<LayeredArenaCache>(geometry, mode);
  for (std::uint64_t layer = 0; reserved > 0 && layer < geometry.num_layers; ++layer)
    cache->reserve(layer, {reserved, reserved});
  return cache;
}

Status LayeredArenaCache::append(std::uint64_t layer, std::span<const float> k,
                                 std::span<const float> v) {
  if (const Status good = check(layer, k, v); !good) return good;
  Layer& to = layers_[layer];
  auto& [keys, values] = to.sides;
  if (keys.capacity - keys.size < k.size() || values.capacity - values.size < v.size())
    reserve(layer, {keys.size + k.size(), values.size + v.size()});
  std::ranges::copy(k, keys.cells.get() + keys.size);
  std::ranges::copy(v, values.cells.get() + values.size);
  keys.size += k.size();
  values.size += v.size();
  ++to.pending;
  return {};
}

Status LayeredArenaCache::check(std::uint64_t layer, std::span<const float> k,
                                std::span<const float> v) const {
  const bool documented = mode_ == Mode::kDocumented;
  if (documented && layer >= layers_.size()) return no_layer(layer);
  if (mode_ != Mode::kRelease) {
    const auto entry = layered::entry_elements(geometry_, mode_);
    if (!entry) return entry.error();
    const Code code = documented ? Code::kBadShape : Code::kPrecondition;
    if (k.size() != *entry) return fail(code, "k");
    if (v.size() != *entry) return fail(code, "v");
  }
  if (layer >= layers_.size()) return no_layer(layer);
  if (documented && layers_[layer].pending > 0) return fail(Code::kPrecondition, "appended");
  return {};
}

void LayeredArenaCache::reserve(std::uint64_t layer, std::array<std::size_t, 2> needed) {
  auto& sides = layers_[layer].sides;
  std::array<Side, 2> grown = sides;
  for (const std::size_t which : {0U, 1U}) {
    const Side& old = sides[which];
    if (old.capacity >= needed[which]) continue;
    grown[which] = place(layer, which, needed[which]);
    grown[which].size = old.size;
    std::copy_n(old.cells.get(), old.size, grown[which].cells.get());
  }
  sides = std::move(grown);  // both or none
}

LayeredArenaCache::Side LayeredArenaCache::place(std::uint64_t layer, std::size_t which,
                                                 std::size_t needed) {
  const std::size_t places = 2 * layers_.size();
  const std::size_t now = layers_[layer].sides[which].capacity;
  if (newest_.capacity < needed) {
    // Room that is not written costs no pages, so arenas grow in large steps.
    const std::size_t capacity = std::max(needed, 4 * now);
    if (capacity > kArenaCells / places) {  // too large to share
      const std::size_t own = std::max(needed, 2 * now);
      return {std::make_shared_for_overwrite<float[]>(own), 0, own};
    }
    newest_ = {std::make_shared_for_overwrite<float[]>(places * capacity), capacity};
  }
  float* cells = newest_.cells.get() + (2 * layer + which) * newest_.capacity;
  return {Cells(newest_.cells, cells), 0, newest_.capacity};
}

Status LayeredArenaCache::advance() {
  if (mode_ == Mode::kDocumented &&
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
  return std::span<const float>(from.cells.get(), from.size);
}

void LayeredArenaCache::clear() {
  for (Layer& layer : layers_) {
    for (Side& side : layer.sides) side.size = 0;
    layer.pending = 0;
  }
  len_ = 0;
}

std::unique_ptr<Cache> LayeredArenaCache::clone() const {
  auto copy = std::make_unique<LayeredArenaCache>(geometry_, mode_);
  copy->len_ = len_;
  for (std::uint64_t layer = 0; layer < layers_.size(); ++layer) {
    copy->layers_[layer].pending = layers_[layer].pending;
    for (const std::size_t which : {0U, 1U}) {
      const Side& from = layers_[layer].sides[which];
      if (from.size == 0) continue;
      Side& to = copy->layers_[layer].sides[which];
      to = copy->place(layer, which, from.size);
      to.size = from.size;
      std::copy_n(from.cells.get(), from.size, to.cells.get());
    }
  }
  return copy;
}

Error LayeredArenaCache::no_layer(std::uint64_t layer) const {
  return fail(mode_ == Mode::kDocumented ? Code::kOutOfRange : Code::kPrecondition,
              "layer " + std::to_string(layer) + " of " + std::to_string(layers_.size()));
}

}  // namespace kvo::optimized
