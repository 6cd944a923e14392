// optimized/layered/arena_cache.hpp: `layered.vector`, fast on a CPU.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "optimized/layered/control.hpp"
#include "optimized/memory/arena.hpp"
#include "optimized/memory/convert.hpp"
#include "optimized/memory/pages.hpp"
#include "optimized/memory/poison.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::optimized {

/// K or V of a layer. Sizes are bytes.
struct ArenaSide {
  Buffer place = {};                       ///< of a short side, or placed with others
  std::shared_ptr<Pages> pages = nullptr;  ///< of a longer one
  std::byte* bytes = nullptr;
  std::size_t size = 0;
  std::size_t capacity = 0;
  std::size_t ready = 0;  ///< bytes that can be written at once; at most `capacity`

  void clear() { size = 0; }
};
struct ArenaLayer {
  std::array<ArenaSide, 2> sides;  ///< K, V
  std::uint64_t pending = 0;       ///< appends since the last advance or clear
};

/// Short sides are in arenas that all layers grow through: a growth costs one allocation, and no
/// side moves because another one grew (RS-13). A side longer than a page has addresses of its own,
/// many more than it needs yet, and grows there without moving; when they are used up, its pages
/// are given larger ones. So no token copies more than a page a side.
///
/// The sides of a copy share one allocation, mostly that of the last copy that ended, with space
/// for a quarter more; so do small sides that are reserved. A side that outgrows its place there is
/// copied once more.
class LayeredArenaCache final : public LayeredControl<LayeredArenaCache, ArenaLayer> {
 public:
  using Behaviour = layered::Behaviour;
  using Geometry = layered::Geometry;

  /// Errors  as of layered::entry_elements and layered::reserved_elements (RS-2).
  static Result<std::unique_ptr<layered::Cache>> make(const Geometry& geometry,
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

  /// A copy of a cache gets its `spare`.
  LayeredArenaCache(const Geometry& geometry, const Behaviour& behaviour,
                    std::shared_ptr<SpareMemory> spare = std::make_shared<SpareMemory>())
      : LayeredControl(geometry, behaviour), spare_(std::move(spare)) {}
  ~LayeredArenaCache() override {
    auto memory = together_.lock();
    layers_.clear();
    if (memory.use_count() == 1) spare_->put(std::move(memory));
  }
  LayeredArenaCache(const LayeredArenaCache&) = delete;
  LayeredArenaCache& operator=(const LayeredArenaCache&) = delete;

  [[nodiscard]] Status append(const layered::Append& op) override {
    const std::uint64_t layer = op.layer;
    const std::span<const float> k = op.k.floats();
    const std::span<const float> v = op.v.floats();
    if (Status good = check(layer, k, v); !good) return good;
    Layer& to = layers_[layer];
    Side& keys = to.sides[0];
    Side& values = to.sides[1];
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
  [[nodiscard]] std::unique_ptr<layered::Cache> clone() const override {
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
  [[nodiscard]] static Shown shown(const ArenaSide& from) {
    return std::span<const std::byte>(from.bytes, from.size);
  }

 private:
  using Side = ArenaSide;
  using Layer = ArenaLayer;

  static constexpr std::size_t kCell = sizeof(float);
  static constexpr std::size_t kMostBytes = std::numeric_limits<std::size_t>::max() / 2;
  /// Bytes of a side that is copied when it outgrows its place.
  static constexpr std::size_t kShortSide = kPageBytes;
  /// Bytes of addresses that a longer side takes in advance; few where guards lie behind buffers,
  /// so that tests reach what comes then.
  static constexpr std::size_t kSideAddresses = std::size_t{256} << 20U;
  static constexpr std::size_t kFewAddresses = std::size_t{32} << 10U;
  /// Pages that a side asks for at once; a power of two.
  static constexpr std::size_t kPagesAhead = 8;

  static std::size_t pages_of(std::size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }

  /// Cells of an arena that hold so many bytes.
  static std::size_t cells_of(std::size_t bytes) { return (bytes + kCell - 1) / kCell; }

  /// Asks for the lines of bytes that are written soon.
  [[gnu::always_inline]] static void will_write_bytes(const std::byte* begin, std::size_t bytes) {
    const auto* const cells = reinterpret_cast<const float*>(begin);  // NOLINT: nothing is read
    will_write(cells, static_cast<std::int64_t>(bytes / kCell));
  }

  /// Bytes that an entry takes.
  [[nodiscard]] std::size_t stored(std::span<const float> entry) const {
    return layered::stored_bytes_of(geometry_, entry.size(), behaviour_.storage);
  }
  /// Stores an entry.
  void put(std::span<const float> entry, std::byte* to) const {
    if (entry.empty()) return;
    if (behaviour_.storage.type == StorageType::kF32) {
      // The library's: the compiler makes a loop of 16 bytes a turn of std::copy.
      std::memcpy(to, entry.data(), entry.size_bytes());
    } else {
      encode_rows(behaviour_.storage, geometry_.head_dim, entry, to);
    }
  }
  /// Gives K and V of a layer room for `needed` bytes and keeps what they hold. When an allocation
  /// fails, nothing that a caller can see has changed.
  void grow(std::uint64_t layer, std::array<std::size_t, 2> needed) {
    auto& sides = layers_[layer].sides;
    std::array<Side, 2> larger;  // both or none
    for (const std::size_t which : {0U, 1U})
      if (sides[which].capacity < needed[which])
        larger[which] = room(needed[which], 4 * sides[which].capacity);
    for (const std::size_t which : {0U, 1U})
      if (larger[which].capacity > 0) move(sides[which], larger[which]);
  }
  /// As grow, and the memory is there, too.
  void make_ready(std::uint64_t layer, std::array<std::size_t, 2> needed) {
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
  /// Gives all sides, which are empty, places in one allocation, by their numbers of bytes.
  template <class BytesOf>
  void place_together(const BytesOf& bytes_of) {
    std::size_t cells = 0;
    for (std::size_t layer = 0; layer < layers_.size(); ++layer)
      for (const std::size_t which : {0U, 1U})
        cells += Arena::room(cells_of(bytes_of(layer, which)));
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
  /// An empty side with room for `needed` bytes, better for `wanted`.
  [[nodiscard]] Side room(std::size_t needed, std::size_t wanted) {
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
  /// `to` gets what `from` holds, which is given up.
  static void move(Side& from, Side& to) {
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
  /// Asks for the memory of the first so many pages of a side that has pages.
  static void ask(Side& side, std::size_t pages) {
    const std::size_t begin = side.ready;
    const std::size_t end = std::min(pages * kPageBytes, side.pages->size());
    side.pages->touch(begin, end);
    unpoison(side.pages->data() + begin, end - begin);
    side.ready = end;
  }

  Arena arena_;
  std::shared_ptr<SpareMemory> spare_;
  std::weak_ptr<ArenaStorage> together_;  ///< what place_together took
};

}  // namespace kvo::optimized
