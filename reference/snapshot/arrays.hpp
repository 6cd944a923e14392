// reference/snapshot/arrays.hpp: arrays as values, and what the caches do to their third axis, S.
//
// Source   rules MR-A1 to MR-A7.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/strided_view.hpp"

namespace kvo::snapshot {

/// Of what the bytes of a row are codes.
struct Codes {
  StorageFormat format = {};
  std::int64_t dim = 0;  ///< elements of a row
  friend bool operator==(const Codes&, const Codes&) = default;
};

/// The type of an element that is a byte of codes.
inline constexpr DType kCodeByte = DType::kF8E4M3;

/// Elements that a cache shows, and what keeps them alive. They never change (MR-A1).
struct Array {  // NOLINT(bugprone-exception-escape): as Tensor
  StridedView view;
  std::shared_ptr<const void> memory = nullptr;
  /// Absent: elements are what they are. Else they are of type kCodeByte, and the last axis is a
  /// row as it is stored (values/numeric.hpp). Rows of zero bytes are rows of zeros (MR-A5).
  std::optional<Codes> codes = std::nullopt;
};

/// Keys and values, [B, H, S, D] each.
struct Pair {  // NOLINT(bugprone-exception-escape): as Tensor
  Array k;
  Array v;
};

/// The axis along which tokens stand.
inline constexpr std::size_t kTokenAxis = 2;
/// B, H, S and D.
inline constexpr std::size_t kArrayAxes = 4;
/// Buffers grow by so many rows at least (MR-10.1).
inline constexpr std::int64_t kGrowth = 256;

[[nodiscard]] Array array_of(Tensor tensor);
/// What an array says: its elements as they are, those of codes decoded, as f32.
[[nodiscard]] Tensor shown(const Array& array);
/// Rows of f32, [B, H, S, D], as a cache stores them; with f32 rows of any type and shape, as they
/// are. Returns  nothing where they are not of that type and shape.
[[nodiscard]] std::optional<Array> stored(const StorageFormat& format, const Array& rows);
/// The last axis of an array of rows of `dim` elements: elements of dtype_of(format.type), or bytes
/// of codes.
[[nodiscard]] std::int64_t stored_dim(const StorageFormat& format, std::int64_t dim);
/// Tokens of an array of four axes.
[[nodiscard]] std::int64_t tokens_of(const Array& array);
/// Bytes of the elements (MR-A7).
[[nodiscard]] std::int64_t bytes_of(const Array& array);

/// A bound of MR-A2 within 0 to tokens.
[[nodiscard]] std::int64_t bound(std::int64_t at, std::int64_t tokens);
/// Tokens [begin, end), bounds as in MR-A2. The same elements, not a copy.
[[nodiscard]] Array sliced(const Array& array, std::int64_t begin, std::int64_t end);
/// `array` with `rows` in the place of tokens [begin, end), cast to its type (MR-A3); rows of its
/// own type bit by bit.
/// Returns  nothing where they do not fit.
[[nodiscard]] std::optional<Array> overwritten(const Array& array, std::int64_t begin,
                                               std::int64_t end, const Array& rows);
/// One behind the other, in the wider type (MR-A4). Returns  nothing where they do not fit.
[[nodiscard]] std::optional<Array> concatenated(const Array& first, const Array& second);
/// Zeros of the shape of `like`, but `tokens` of them (MR-A5). Returns  nothing below 0.
[[nodiscard]] std::optional<Array> zeros(const Array& like, std::int64_t tokens);

/// Whether B, H and D are alike, and codes, if they are codes.
[[nodiscard]] bool same_rows(const Array& a, const Array& b);
/// f16 and bf16 have a rank below f32: the wider type of two holds the values of both.
[[nodiscard]] bool wider(DType a, DType b);

}  // namespace kvo::snapshot
