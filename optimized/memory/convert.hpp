// optimized/memory/convert.hpp: rows to the types in which they are stored, and back, with the
// vectors of the processor that runs (Google Highway chooses).
//
// Bit for bit what values/numeric.hpp says of each row (convert_test, on every target).
#pragma once

#include <cstddef>
#include <span>

#include "reference/contract/values/numeric.hpp"

namespace kvo::optimized {

/// Writes rows of `dim` elements one behind the other as they are stored, [rows, stored_bytes].
/// Requires dim >= 1 and whole rows.
void encode_rows(const StorageFormat& format, std::size_t dim, std::span<const float> rows,
                 std::byte* to);
/// Reads them back. Requires the same.
void decode_rows(const StorageFormat& format, std::size_t dim, const std::byte* from,
                 std::span<float> rows);

}  // namespace kvo::optimized
