// optimized/layered/arena_cache.hpp: `layered.vector`, fast on a CPU.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "optimized/layered/control.hpp"
#include "optimized/memory/arena.hpp"
#include "optimized/memory/pages.hpp"
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
  /// Errors  as of layered::entry_elements and layered::reserved_elements (RS-2).
  static Result<std::unique_ptr<layered::Cache>> make(const layered::Geometry& geometry,
                                                      std::optional<std::uint64_t> max_seq_len,
                                                      const layered::Behaviour& behaviour);

  /// A copy of a cache gets its `spare`.
  LayeredArenaCache(const layered::Geometry& geometry, const layered::Behaviour& behaviour,
                    std::shared_ptr<SpareMemory> spare = std::make_shared<SpareMemory>())
      : LayeredControl(geometry, behaviour), spare_(std::move(spare)) {}
  ~LayeredArenaCache() override;
  LayeredArenaCache(const LayeredArenaCache&) = delete;
  LayeredArenaCache& operator=(const LayeredArenaCache&) = delete;

  [[nodiscard]] Status append(const layered::Append& op) override;
  [[nodiscard]] std::unique_ptr<layered::Cache> clone() const override;
  [[nodiscard]] static Shown shown(const ArenaSide& from) {
    return std::span<const std::byte>(from.bytes, from.size);
  }

 private:
  using Side = ArenaSide;
  using Layer = ArenaLayer;

  /// Bytes that an entry takes.
  [[nodiscard]] std::size_t stored(std::span<const float> entry) const {
    return layered::stored_bytes_of(geometry_, entry.size(), behaviour_.storage);
  }
  /// Stores an entry.
  void put(std::span<const float> entry, std::byte* to) const;
  /// Gives K and V of a layer room for `needed` bytes and keeps what they hold. When an allocation
  /// fails, nothing that a caller can see has changed.
  void grow(std::uint64_t layer, std::array<std::size_t, 2> needed);
  /// As grow, and the memory is there, too.
  void make_ready(std::uint64_t layer, std::array<std::size_t, 2> needed);
  /// Gives all sides, which are empty, places in one allocation, by their numbers of bytes.
  template <class BytesOf>
  void place_together(const BytesOf& bytes_of);
  /// An empty side with room for `needed` bytes, better for `wanted`.
  [[nodiscard]] Side room(std::size_t needed, std::size_t wanted);
  /// `to` gets what `from` holds, which is given up.
  static void move(Side& from, Side& to);
  /// Asks for the memory of the first so many pages of a side that has pages.
  static void ask(Side& side, std::size_t pages);

  Arena arena_;
  std::shared_ptr<SpareMemory> spare_;
  std::weak_ptr<ArenaStorage> together_;  ///< what place_together took
};

}  // namespace kvo::optimized
