// optimized/arena.hpp: memory that several buffers share, and copies of whole runs of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "reference/contract/tensor.hpp"

namespace kvo::optimized {

/// Buffers share one allocation up to this size: fewer allocations, and neighbours in memory. It is
/// reserved but not touched, so what no buffer writes costs no pages.
inline constexpr std::size_t kArenaCells = (std::size_t{32} << 20U) / sizeof(float);

/// Cells in host memory that start with arbitrary values: for owners that show only what they
/// wrote.
class ArenaStorage final : public Storage {
 public:
  explicit ArenaStorage(std::size_t count)
      : cells_(std::make_unique_for_overwrite<float[]>(count)), count_(count) {}

  [[nodiscard]] float* data() { return cells_.get(); }
  [[nodiscard]] std::size_t size() const { return count_; }
  void read(std::int64_t offset, std::span<float> out) const override;
  void write(std::int64_t offset, float value) override;

 private:
  std::unique_ptr<float[]> cells_;  // NOLINT(modernize-avoid-c-arrays): std::vector would clear it
  std::size_t count_;
};

/// Where rows of equal width lie: the first one, and the cells from one to the next.
template <class Cell>
struct Rows2d {
  Cell* first;
  std::int64_t stride;
};

/// Copies `rows` rows of `width` cells; the two sides must not overlap.
void copy_rows(Rows2d<float> to, Rows2d<const float> from, std::int64_t rows, std::int64_t width);

}  // namespace kvo::optimized
