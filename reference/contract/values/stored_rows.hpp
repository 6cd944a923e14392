// reference/contract/values/stored_rows.hpp: rows as a cache stores them, behind views that show
// them as f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo {

/// Rows of `dim` elements, one behind the other, as they are stored. Offsets of views count
/// elements; those of codes are whole rows.
class StoredRows final : public Storage {
 public:
  /// Zeroed rows, so many elements in all. Throws std::bad_alloc.
  StoredRows(const StorageFormat& format, std::int64_t dim, std::size_t elements);
  /// Rows that lie in memory of somebody else, which `owner` keeps.
  StoredRows(const StorageFormat& format, std::int64_t dim, std::span<std::byte> bytes,
             std::shared_ptr<const void> owner);

  /// What so many elements take, in rows of `dim`. Throws std::bad_alloc where that leaves 63 bits.
  [[nodiscard]] static std::size_t bytes_of(const StorageFormat& format, std::int64_t dim,
                                            std::size_t elements);

  /// The bytes of rows [first, first + count), which must be there.
  [[nodiscard]] std::span<std::byte> rows(std::int64_t first, std::int64_t count) const;
  /// Stores whole rows, from row `first` on.
  void put(std::int64_t first, std::span<const float> elements);

  void read(std::int64_t offset, std::span<float> out) const override;
  /// Rounds the value. Requires a type without groups: a code says nothing without its neighbours.
  void write(std::int64_t offset, float value) override;

 private:
  StorageFormat format_;
  std::int64_t dim_;
  std::vector<std::byte> own_;
  std::shared_ptr<const void> owner_;
  std::span<std::byte> bytes_;
};

}  // namespace kvo
