#include "optimized/memory/arena.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "optimized/memory/poison.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::optimized {
namespace {

#if defined(KVO_ADDRESS_SANITIZER) || defined(KVO_GUARD_ROWS)
constexpr bool kGuarded = true;
#else
constexpr bool kGuarded = false;
#endif

/// What no cache stores: it fills guards, and buffers before they are written.
constexpr std::uint32_t kUnwritten = 0x7FBADBADU;

// Who writes behind a buffer begins there; of a pool's blocks all are looked at after every
// operation.
std::size_t watched_cells(std::size_t cells) {
  constexpr std::size_t kMost = 64;
  return std::min(guard_cells(cells), kMost);
}

// Rows too short to be worth a call.
void copy_short(Rows2d<float> to, Rows2d<const float> from, std::int64_t rows, std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r) {
    float* target = to.first + r * to.stride;
    const float* source = from.first + r * from.stride;
    for (std::int64_t i = 0; i < width; ++i) target[i] = source[i];
  }
}

// The library's memcpy, also where the width is known: the compiler would make `rep movsq` of it.
void copy_any(Rows2d<float> to, Rows2d<const float> from, std::int64_t rows, std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r) {
    if (r + kRowsAhead < rows) will_write(to.first + (r + kRowsAhead) * to.stride, width);
    std::memcpy(to.first + r * to.stride, from.first + r * from.stride,
                static_cast<std::size_t>(width) * sizeof(float));
  }
}

}  // namespace

Cells make_cells(std::size_t count, Written written) {
  // NOLINTNEXTLINE(modernize-avoid-c-arrays)
  Cells cells = std::make_unique_for_overwrite<float[]>(count);
#ifdef MADV_HUGEPAGE
  constexpr std::size_t kHuge = std::size_t{2} << 20U;
  void* start = cells.get();
  std::size_t room = count * sizeof(float);
  // Only whole huge pages inside the allocation; a kernel that declines changes nothing.
  if (written == Written::kAtOnce && room >= 2 * kHuge &&
      std::align(kHuge, kHuge, start, room) != nullptr)
    (void)madvise(start, room / kHuge * kHuge, MADV_HUGEPAGE);
#endif
  return cells;
}

void ArenaStorage::read(std::int64_t offset, std::span<float> out) const {
  KVO_CHECK(offset >= 0 && static_cast<std::size_t>(offset) + out.size() <= count_);
  std::copy_n(cells_.get() + offset, out.size(), out.begin());
}

void ArenaStorage::write(std::int64_t offset, float value) {
  KVO_CHECK(offset >= 0 && static_cast<std::size_t>(offset) < count_);
  cells_[static_cast<std::size_t>(offset)] = value;
}

std::size_t guard_cells(std::size_t cells) {
  if (!kGuarded || cells == 0) return 0;
  constexpr std::size_t kLeast = 16;
  constexpr std::size_t kMost = 512;
  // Buffers begin at words.
  return std::clamp(cells, kLeast, kMost) / 2 * 2 + cells % 2;
}

void put_guard(float* buffer, std::size_t cells) {
  if (!kGuarded) return;
  std::fill_n(buffer + cells, watched_cells(cells), std::bit_cast<float>(kUnwritten));
  poison(buffer + cells, guard_cells(cells) * sizeof(float));
}

void spoil(void* begin, std::size_t bytes) {
  constexpr std::size_t kMost = 16'384;
  if (kGuarded) std::memset(begin, kUnwritten & 0xFFU, std::min(bytes, kMost));
}

bool guard_holds([[maybe_unused]] const float* buffer, [[maybe_unused]] std::size_t cells) {
#ifdef KVO_ADDRESS_SANITIZER
  return true;  // it was told when it happened
#else
  const std::size_t count = watched_cells(cells);
  const float* guard = buffer + cells;
  return count == 0 || (std::bit_cast<std::uint32_t>(*guard) == kUnwritten &&
                        std::memcmp(guard, guard + 1, (count - 1) * sizeof(float)) == 0);
#endif
}

void Arena::renew(std::size_t cells, std::size_t buffers) {
  storage = std::make_shared<ArenaStorage>(buffers * (cells + guard_cells(cells)), written);
  poison(storage->data(), storage->size() * sizeof(float));
  buffer_cells = cells;
  next = 0;
}

Buffer Arena::take(std::size_t cells, std::size_t wanted) {
  if (cells != buffer_cells || !has_room())
    renew(cells, cells == 0 ? 1 : std::clamp<std::size_t>(kArenaCells / cells, 1, wanted));
  return cut(cells);
}

Buffer Arena::cut(std::size_t cells) {
  const Buffer buffer{storage, static_cast<std::int64_t>(next)};
  next += cells + guard_cells(cells);
  unpoison(buffer.data(), (cells + guard_cells(cells)) * sizeof(float));
  spoil(buffer.data(), cells * sizeof(float));
  put_guard(buffer.data(), cells);
  return buffer;
}

Arena SpareMemory::take(std::size_t cells) {
  std::shared_ptr<ArenaStorage> memory;
  {
    const std::lock_guard lock(mutex_);
    memory = std::move(memory_);
  }
  // The next copy is mostly a token longer.
  constexpr std::size_t kLeastPart = 4;
  if (!memory || memory->size() < cells || memory->size() / kLeastPart > cells)
    memory = std::make_shared<ArenaStorage>(cells + cells / 8, Written::kBitByBit);
  poison(memory->data(), memory->size() * sizeof(float));
  return {.storage = std::move(memory)};
}

void SpareMemory::put(std::shared_ptr<ArenaStorage> memory) noexcept {
  const std::lock_guard lock(mutex_);
  memory_.swap(memory);
}

bool ResultSides::past_caches(std::size_t cells) {
  // What malloc maps. Where guards are, all results are made so, that small cases try it.
  constexpr std::size_t kMapped = kGuarded ? 0 : (std::size_t{32} << 20U) / sizeof(float);
  return 2 * cells > kMapped;
}

std::array<Buffer, 2> ResultSides::take(std::size_t cells) {
  if (!past_caches(cells)) {
    Arena arena;
    arena.renew(cells, 2);
    return {arena.take(cells, 2), arena.take(cells, 2)};
  }
  const std::size_t needed = cells + guard_cells(cells);
  if (!kept_ || kept_.use_count() > 1 || room_ < needed || room_ / 2 > needed) {
    constexpr std::size_t kLine = 16;                       // V begins at a line of the caches
    room_ = (needed + needed / 8) / kLine * kLine + kLine;  // the next one is mostly a token longer
    kept_.reset();
    kept_ = std::make_shared<ArenaStorage>(2 * room_);
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // whoever let go of the last one read it
  poison(kept_->data(), kept_->size() * sizeof(float));
  const std::array<Buffer, 2> sides{{{kept_, 0}, {kept_, static_cast<std::int64_t>(room_)}}};
  for (const Buffer& side : sides) {
    unpoison(side.data(), needed * sizeof(float));
    spoil(side.data(), cells * sizeof(float));
    put_guard(side.data(), cells);
  }
  return sides;
}

void copy_rows(Rows2d<float> to, Rows2d<const float> from, std::int64_t rows, std::int64_t width) {
  if (rows <= 0 || width <= 0) return;
  // Rows without gaps are one long row.
  if (rows == 1 || (to.stride == width && from.stride == width))
    return copy_any(to, from, 1, rows * width);
  constexpr std::int64_t kShort = 16;
  if (width < kShort) return copy_short(to, from, rows, width);
  copy_any(to, from, rows, width);
}

void copy_rows_past_caches(Rows2d<float> to, Rows2d<const float> from, std::int64_t rows,
                           std::int64_t width) {
#if defined(__SSE2__)
  constexpr std::int64_t kLane = 4;
  const auto is_whole = [](std::uintptr_t bytes) { return bytes % (kLane * sizeof(float)) == 0; };
  if (width % kLane == 0 && to.stride % kLane == 0 &&
      is_whole(reinterpret_cast<std::uintptr_t>(to.first))) {  // NOLINT: where it lies
    // Rows without gaps are one long row.
    if (from.stride == width && to.stride == from.stride) {
      width *= rows;
      rows = 1;
    }
    constexpr std::int64_t kLine = 16;
    constexpr std::int64_t kAhead = 64 * kLine;
    for (std::int64_t r = 0; r < rows; ++r) {
      float* target = to.first + r * to.stride;
      const float* source = from.first + r * from.stride;
      std::int64_t i = 0;
      // Of a long row the processor foresees what is read up to the end of a page, not beyond.
      for (; i + 2 * kAhead <= width; i += kLine) {
        __builtin_prefetch(source + i + kAhead);
        for (std::int64_t j = i; j < i + kLine; j += kLane)
          _mm_stream_ps(target + j, _mm_loadu_ps(source + j));
      }
      for (; i < width; i += kLane) _mm_stream_ps(target + i, _mm_loadu_ps(source + i));
    }
    return;
  }
#endif
  copy_rows(to, from, rows, width);
}

void finish_copies_past_caches() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace kvo::optimized
