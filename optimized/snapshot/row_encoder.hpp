// optimized/snapshot/row_encoder.hpp: f32 rows as a cache stores them, in the order of its blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "reference/snapshot/cache.hpp"

namespace kvo::optimized {

/// Encodes rows into memory of its own, which the next ones take again.
class RowEncoder {
 public:
  explicit RowEncoder(const StorageFormat& format) : format_(format) {}

  /// Whether rows are encoded at all.
  [[nodiscard]] bool encodes() const { return format_.type != StorageType::kF32; }
  /// K and V, [B, H, S, D] with tokens as the slowest axis in memory. They change with the next
  /// call, unless somebody keeps them. Throws std::bad_alloc.
  /// Errors  as snapshot::as_stored.
  [[nodiscard]] Result<snapshot::Pair> encoded(const snapshot::Array& k, const snapshot::Array& v,
                                               QuirkSet<snapshot::Quirk> quirks);

 private:
  using Bytes = std::shared_ptr<std::vector<std::byte>>;
  /// Whether rows can be encoded.
  [[nodiscard]] bool takes(const snapshot::Array& rows) const;
  [[nodiscard]] snapshot::Array encoded(const snapshot::Array& rows, Bytes& bytes) const;

  StorageFormat format_;
  Bytes k_bytes_ = nullptr;
  Bytes v_bytes_ = nullptr;
};

}  // namespace kvo::optimized
