#include "optimized/layered/arena_cache.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "optimized/memory/convert.hpp"
#include "optimized/memory/poison.hpp"

namespace kvo::optimized {
namespace {

constexpr std::size_t kCell = sizeof(float);
constexpr std::size_t kMostBytes = std::numeric_limits<std::size_t>::max() / 2;
/// Bytes of a side that is copied when it outgrows its place.
constexpr std::size_t kShortSide = kPageBytes;
/// Bytes of addresses that a longer side takes in advance; few where guards lie behind buffers, so
/// that tests reach what comes then.
constexpr std::size_t kSideAddresses = std::size_t{256} << 20U;
constexpr std::size_t kFewAddresses = std::size_t{32} << 10U;
/// Pages that a side asks for at once; a power of two.
constexpr std::size_t kPagesAhead = 8;

std::size_t pages_of(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes;
}

/// Cells of an arena that hold so many bytes.
std::size_t cells_of(std::size_t bytes) {
  return (bytes + kCell - 1) / kCell;
}

/// Asks for the lines of bytes that are written soon.
[[gnu::always_inline]] inline void will_write_bytes(const std::byte* begin, std::size_t bytes) {
  const auto* const cells = reinterpret_cast<const float*>(begin);  // NOLINT: nothing is read
  will_write(cells, static_cast<std::int64_t>(bytes / kCell));
}

}  // namespace

using layered::Behaviour;
using layered::Cache;
using layered::Geometry;

Result<std::unique_ptr<Cache>> LayeredArenaCache::make(const Geometry& geometry,
                                                       std::optional<std::uint64_t> max_seq_len,
                                                       const Behaviour& behaviour) {
  const auto elements = LayeredControl::elements_to_reserve(geometry, max_seq_len, behaviour);
  if (!elements) return elements.error();
  const std::size_t reserved = layered::stored_bytes_of(geometry, *elements, behaviour.storage);
  auto cache = std::make_unique<LayeredArenaCache>(geometry, behaviour);
  if (reserved == 0 || geometry.num_layers == 0) return cache;
  if (reserved <= kArenaCells * kCell / 2 / geometry.num_layers) {
    cache->place_together([&](std::size_t, std::size_t) { return reserved; });
    return cache;
  }
  for (std::uint64_t layer = 0; layer < geometry.num_layers; ++layer)
    cache->grow(layer, {reserved, reserved});
  return cache;
}

Status LayeredArenaCache::append(const layered::Append& op) {
  const std::uint64_t layer = op.layer;
  const std::span<const float> k = op.k.floats();
  const std::span<const float> v = op.v.floats();
  if (Status good = check(layer, k, v); !good) return good;
  Layer& to = layers_[layer];
  auto& [keys, values] = to.sides;
  const std::size_t k_bytes = stored(k);
  const std::size_t v_bytes = stored(v);
  if (keys.ready - keys.size < k_bytes || values.ready - values.size < v_bytes)
    make_ready(layer, {keys.size + k_bytes, values.size + v_bytes});
  will_write_bytes(values.bytes + values.size, v_bytes);
  put(k, keys.bytes + keys.size);
  put(v, values.bytes + values.size);
  keys.size += k_bytes;
  values.size += v_bytes;
  ++to.pending;
  // Most likely the next layer's rows come now.
  const Layer& next = layers_[layer + 1 < layers_.size() ? layer + 1 : 0];
  will_write_bytes(next.sides[0].bytes + next.sides[0].size, k_bytes);
  will_write_bytes(next.sides[1].bytes + next.sides[1].size, v_bytes);
  return {};
}

void LayeredArenaCache::put(std::span<const float> entry, std::byte* to) const {
  if (entry.empty()) return;
  if (behaviour_.storage.type == StorageType::kF32) {
    // The library's: the compiler makes a loop of 16 bytes a turn of std::copy.
    std::memcpy(to, entry.data(), entry.size_bytes());
  } else {
    encode_rows(behaviour_.storage, geometry_.head_dim, entry, to);
  }
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
    const bool fits = arena_.has_room() && arena_.buffer_cells * kCell >= needed;
    const std::size_t cells =
        fits ? arena_.buffer_cells : cells_of(std::max(needed, std::min(wanted, kShortSide)));
    const Buffer place = arena_.take(cells, 2 * layers_.size());
    auto* const bytes = reinterpret_cast<std::byte*>(place.data());
    return {.place = place, .bytes = bytes, .capacity = cells * kCell, .ready = cells * kCell};
  }
  if (needed > kMostBytes) throw std::bad_alloc();
  const std::size_t spare = spare_addresses(guard_cells(1) > 0 ? kFewAddresses : kSideAddresses);
  ask_allocator(needed);
  auto pages = std::make_shared<Pages>(std::initializer_list<std::size_t>{
      std::max({needed, wanted, spare}), needed + needed / 4, needed});
  poison(pages->data(), pages->size());
  std::byte* const bytes = pages->data();
  const std::size_t capacity = pages->size();
  return {.pages = std::move(pages), .bytes = bytes, .capacity = capacity};
}

void LayeredArenaCache::move(Side& from, Side& to) {
  if (from.pages && to.pages) {
    to.pages->take(*from.pages);
    to.ready = from.ready;
    unpoison(to.bytes, to.ready);
  } else {
    if (to.pages) ask(to, pages_of(from.size));
    if (from.size > 0) std::memcpy(to.bytes, from.bytes, from.size);
  }
  to.size = from.size;
  from = std::move(to);
}

void LayeredArenaCache::ask(Side& side, std::size_t pages) {
  const std::size_t begin = side.ready;
  const std::size_t end = std::min(pages * kPageBytes, side.pages->size());
  side.pages->touch(begin, end);
  unpoison(side.pages->data() + begin, end - begin);
  side.ready = end;
}

template <class BytesOf>
void LayeredArenaCache::place_together(const BytesOf& bytes_of) {
  std::size_t cells = 0;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    for (const std::size_t which : {0U, 1U}) cells += Arena::room(cells_of(bytes_of(layer, which)));
  Arena together = spare_->take(cells);
  together_ = together.storage;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    for (const std::size_t which : {0U, 1U}) {
      const std::size_t count = cells_of(bytes_of(layer, which));
      if (count == 0) continue;
      const Buffer place = together.cut(count);
      layers_[layer].sides[which] = {.place = place,
                                     .bytes = place.bytes(),
                                     .capacity = count * kCell,
                                     .ready = count * kCell};
    }
}

LayeredArenaCache::~LayeredArenaCache() {
  auto memory = together_.lock();
  layers_.clear();
  if (memory.use_count() == 1) spare_->put(std::move(memory));
}

std::unique_ptr<Cache> LayeredArenaCache::clone() const {
  auto copy = std::make_unique<LayeredArenaCache>(geometry_, behaviour_, spare_);
  copy->len_ = len_;
  copy->place_together([&](std::size_t layer, std::size_t which) {
    const std::size_t held = layers_[layer].sides[which].size;
    return held + held / 4;
  });
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    copy->layers_[layer].pending = layers_[layer].pending;
    for (const std::size_t which : {0U, 1U}) {
      const Side& from = layers_[layer].sides[which];
      Side& to = copy->layers_[layer].sides[which];
      if (from.size > 0) std::memcpy(to.bytes, from.bytes, from.size);
      to.size = from.size;
    }
  }
  return copy;
}

}  // namespace kvo::optimized
