// optimized/memory/arena.hpp: memory that several buffers share, and copies of whole runs of rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "reference/contract/values/tensor.hpp"

namespace kvo::optimized {

/// Buffers share one allocation up to this size: fewer allocations, and neighbours in memory. What
/// no buffer writes costs no pages. Twice as much would leave malloc for mmap, and every arena
/// cold.
inline constexpr std::size_t kArenaCells = (std::size_t{16} << 20U) / sizeof(float);

/// Cells that hold so many bytes, for rows that are no f32.
[[nodiscard]] constexpr std::size_t cells_of_bytes(std::size_t bytes) {
  return bytes / sizeof(float) + (bytes % sizeof(float) > 0 ? 1 : 0);
}

using Cells = std::unique_ptr<float[]>;  // NOLINT(modernize-avoid-c-arrays): std::vector clears

/// How cells are written at first.
enum class Written : std::uint8_t {
  kAtOnce,    ///< they ask for huge pages: a fault for 2 MiB instead of 512
  kBitByBit,  ///< whoever met a huge page would wait for all of it to be cleared
};

/// `count` cells of arbitrary value.
[[nodiscard]] Cells make_cells(std::size_t count, Written written = Written::kAtOnce);

/// Cells that lie behind a buffer of `cells` and belong to nobody: as many again, up to a bound, so
/// that one row too many of any stride ends there. None but under the address sanitizer, which
/// reports who touches them, and in the copies of this file in which faults are seeded.
[[nodiscard]] std::size_t guard_cells(std::size_t cells);
/// Makes the guard behind a buffer.
void put_guard(float* buffer, std::size_t cells);
/// Where guards are, makes bytes that nobody wrote differ from zeros: the first ones, since a page
/// that is touched costs memory.
void spoil(void* begin, std::size_t bytes);
/// Whether nobody wrote behind a buffer.
[[nodiscard]] bool guard_holds(const float* buffer, std::size_t cells);

/// Cells in host memory that start with arbitrary values: for owners that show only what they
/// wrote.
class ArenaStorage final : public Storage {
 public:
  explicit ArenaStorage(std::size_t count, Written written = Written::kAtOnce)
      : cells_(make_cells(count, written)), count_(count) {}

  [[nodiscard]] float* data() { return cells_.get(); }
  [[nodiscard]] std::size_t size() const { return count_; }
  void read(std::int64_t offset, std::span<float> out) const override;
  void write(std::int64_t offset, float value) override;

 private:
  Cells cells_;
  std::size_t count_;
};

/// Some cells of a storage that others share.
struct Buffer {
  std::shared_ptr<ArenaStorage> storage;
  std::int64_t offset = 0;  ///< first cell
  [[nodiscard]] float* data() const { return storage->data() + offset; }
  [[nodiscard]] std::byte* bytes() const { return reinterpret_cast<std::byte*>(data()); }
};

/// Hands out buffers of one size, several to an allocation. Buffers keep the allocation alive. What
/// is not handed out is poisoned.
struct Arena {
  std::shared_ptr<ArenaStorage> storage = nullptr;
  std::size_t buffer_cells = 0;
  std::size_t next = 0;  ///< first cell not handed out
  Written written = Written::kAtOnce;

  /// A buffer of buffer_cells is left.
  [[nodiscard]] bool has_room() const { return storage && storage->size() - next >= buffer_cells; }
  /// A buffer of exactly `cells`, from a new allocation when this one has other sizes or is full;
  /// `wanted` says for how many buffers to make room at most, at least 1.
  [[nodiscard]] Buffer take(std::size_t cells, std::size_t wanted);
  /// A buffer of any size. Requires  room(cells) cells that are not handed out.
  [[nodiscard]] Buffer cut(std::size_t cells);
  /// A new allocation, for `buffers` of `cells`.
  void renew(std::size_t cells, std::size_t buffers);
  /// Cells that a buffer takes, with its guard.
  [[nodiscard]] static std::size_t room(std::size_t cells) { return cells + guard_cells(cells); }
};

/// Memory of the last copy of a cache that ended, for the next copy: the allocator would return it
/// to the system, and each page would be cleared anew. A cache shares this with all its copies.
class SpareMemory {
 public:
  /// An arena of `cells`, of which nothing is handed out. Throws std::bad_alloc.
  [[nodiscard]] Arena take(std::size_t cells);
  /// Holds memory that nothing else uses until the next take.
  void put(std::shared_ptr<ArenaStorage> memory) noexcept;

 private:
  std::mutex mutex_;  ///< copies may end in other threads
  std::shared_ptr<ArenaStorage> memory_;
};

/// Memory for results of both sides. One that is too large for malloc to keep would be mapped, and
/// every page of it cleared, anew each time: it lies where the one before lay, once nobody has
/// that.
class ResultSides {
 public:
  /// K and V of `cells` each, in one allocation that no other result has, of arbitrary values.
  [[nodiscard]] std::array<Buffer, 2> take(std::size_t cells);
  /// Whether such a result is to be written past the caches.
  [[nodiscard]] static bool past_caches(std::size_t cells);

 private:
  std::shared_ptr<ArenaStorage> kept_;
  std::size_t room_ = 0;  ///< cells of a side that is kept
};

/// So many rows before it is written, copy_rows asks for one.
inline constexpr std::int64_t kRowsAhead = 2;

/// Where rows of equal width lie: the first one, and the cells from one to the next.
template <class Cell>
struct Rows2d {
  Cell* first;
  std::int64_t stride;
};

/// Asks the processor for the lines of cells that are written soon, the first ones of many: a token
/// writes a row in each of many places, which the processor cannot foresee. Null asks for none, and
/// cells that nobody has do no harm. Inlined, since g++ leaves calls out that only ask.
[[gnu::always_inline]] inline void will_write(const float* begin, std::int64_t cells) {
  constexpr std::int64_t kMostCells = 256;
  constexpr std::int64_t kLine = 16;
  if (begin == nullptr) return;
  for (std::int64_t i = 0; i < cells && i < kMostCells; i += kLine)
    __builtin_prefetch(begin + i, 1);
}
/// The same for the first rows of some; copy_rows sees to the others.
[[gnu::always_inline]] inline void will_write(Rows2d<float> to, std::int64_t rows,
                                              std::int64_t width) {
  for (std::int64_t r = 0; r < rows && r < kRowsAhead; ++r)
    will_write(to.first + r * to.stride, width);
}

/// Copies `rows` rows of `width` cells; the two sides must not overlap.
void copy_rows(Rows2d<float> to, Rows2d<const float> from, std::int64_t rows, std::int64_t width);

/// The same where so much is copied that the caches forget it: what is written past them need not
/// be fetched first, which is how memcpy does it. finish_copies_past_caches() comes last: it makes
/// them visible to other threads in order.
void copy_rows_past_caches(Rows2d<float> to, Rows2d<const float> from, std::int64_t rows,
                           std::int64_t width);
void finish_copies_past_caches();

}  // namespace kvo::optimized
