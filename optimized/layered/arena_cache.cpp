#include "optimized/layered/arena_cache.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "optimized/memory/poison.hpp"

namespace kvo::optimized {
namespace {

constexpr std::size_t kCell = sizeof(float);
constexpr std::size_t kMostCells = std::numeric_limits<std::size_t>::max() / kCell / 2;
/// Cells of a side that is copied when it outgrows its place.
constexpr std::size_t kShortSide = kPageBytes / kCell;
/// Bytes of addresses that a longer side takes in advance; few where guards lie behind buffers, so
/// that tests reach what comes then.
constexpr std::size_t kSideAddresses = std::size_t{256} << 20U;
constexpr std::size_t kFewAddresses = std::size_t{32} << 10U;
/// Pages that a side asks for at once; a power of two.
constexpr std::size_t kPagesAhead = 8;

std::size_t pages_of(std::size_t cells) {
  return (cells * kCell + kPageBytes - 1) / kPageBytes;
}

}  // namespace

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
    cache->grow(layer, {reserved, reserved});
  return cache;
}

Status LayeredArenaCache::append(std::uint64_t layer, std::span<const float> k,
                                 std::span<const float> v) {
  if (Status good = check(layer, k, v); !good) return good;
  Layer& to = layers_[layer];
  auto& [keys, values] = to.sides;
  if (keys.ready - keys.size < k.size() || values.ready - values.size < v.size())
    make_ready(layer, {keys.size + k.size(), values.size + v.size()});
  will_write(values.cells + values.size, std::ssize(v));
  // The library's: the compiler makes a loop of 16 bytes a turn of std::copy.
  if (!k.empty()) std::memcpy(keys.cells + keys.size, k.data(), k.size_bytes());
  if (!v.empty()) std::memcpy(values.cells + values.size, v.data(), v.size_bytes());
  keys.size += k.size();
  values.size += v.size();
  ++to.pending;
  // Most likely the next layer's rows come now.
  const Layer& next = layers_[layer + 1 < layers_.size() ? layer + 1 : 0];
  will_write(next.sides[0].cells + next.sides[0].size, std::ssize(k));
  will_write(next.sides[1].cells + next.sides[1].size, std::ssize(v));
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

void LayeredArenaCache::grow(std::uint64_t layer, std::array<std::size_t, 2> needed) {
  auto& sides = layers_[layer].sides;
  std::array<Side, 2> larger;  // both or none
  for (const std::size_t which : {0U, 1U})
    if (sides[which].capacity < needed[which])
      larger[which] = room(needed[which], 4 * sides[which].capacity);
  for (const std::size_t which : {0U, 1U})
    if (larger[which].capacity > 0) move(sides[which], larger[which]);
}

void LayeredArenaCache::make_ready(std::uint64_t layer, std::array<std::size_t, 2> needed) {
  grow(layer, needed);
  for (const std::size_t which : {0U, 1U}) {
    Side& side = layers_[layer].sides[which];
    if (side.ready >= needed[which]) continue;
    // The sides of a model grow alike; they must not all ask in the same step.
    const std::size_t turn = 2 * layer + which;
    const std::size_t pages = pages_of(needed[which]);
    ask(side, pages + (turn - pages) % kPagesAhead);
  }
}

LayeredArenaCache::Side LayeredArenaCache::room(std::size_t needed, std::size_t wanted) {
  if (needed <= kShortSide) {
    // Another side that grew before this one has left places that fit.
    const bool fits = arena_.has_room() && arena_.buffer_cells >= needed;
    const std::size_t capacity =
        fits ? arena_.buffer_cells : std::max(needed, std::min(wanted, kShortSide));
    const Buffer place = arena_.take(capacity, 2 * layers_.size());
    return {.place = place, .cells = place.data(), .capacity = capacity, .ready = capacity};
  }
  if (needed > kMostCells) throw std::bad_alloc();
  const std::size_t spare = spare_addresses(guard_cells(1) > 0 ? kFewAddresses : kSideAddresses);
  const std::size_t bytes = needed * kCell;
  ask_allocator(bytes);
  auto pages = std::make_shared<Pages>(std::initializer_list<std::size_t>{
      std::max({bytes, wanted * kCell, spare}), bytes + bytes / kCell, bytes});
  poison(pages->data(), pages->size());
  auto* const cells = reinterpret_cast<float*>(pages->data());
  const std::size_t capacity = pages->size() / kCell;
  return {.pages = std::move(pages), .cells = cells, .capacity = capacity};
}

void LayeredArenaCache::move(Side& from, Side& to) {
  if (from.pages && to.pages) {
    to.pages->take(*from.pages);
    to.ready = from.ready;
    unpoison(to.cells, to.ready * kCell);
  } else {
    if (to.pages) ask(to, pages_of(from.size));
    std::copy_n(from.cells, from.size, to.cells);
  }
  to.size = from.size;
  from = std::move(to);
}

void LayeredArenaCache::ask(Side& side, std::size_t pages) {
  const std::size_t begin = side.ready * kCell;
  const std::size_t end = std::min(pages * kPageBytes, side.pages->size());
  side.pages->touch(begin, end);
  unpoison(side.pages->data() + begin, end - begin);
  side.ready = end / kCell;
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
  return std::span<const float>(from.cells, from.size);
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
      if (from.size == 0) continue;
      Side to = copy->room(from.size, from.size);
      if (to.pages) ask(to, pages_of(from.size));
      std::copy_n(from.cells, from.size, to.cells);
      to.size = from.size;
      copy->layers_[layer].sides[which] = std::move(to);
    }
  }
  return copy;
}

Error LayeredArenaCache::no_layer(std::uint64_t layer) const {
  return fail(has(Quirk::kLayerAborts) ? Code::kPrecondition : Code::kOutOfRange,
              "layer " + std::to_string(layer) + " of " + std::to_string(layers_.size()));
}

}  // namespace kvo::optimized
