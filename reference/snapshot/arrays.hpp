// reference/snapshot/arrays.hpp: arrays as values, and what the caches do to their third axis, S.
//
// Source   rules MR-A1 to MR-A7.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "reference/contract/values/strided_view.hpp"

namespace kvo::snapshot {

/// Elements that a cache shows, and what keeps them alive. They never change (MR-A1).
struct Array {  // NOLINT(bugprone-exception-escape): as Tensor
  StridedView view;
  std::shared_ptr<const void> memory = nullptr;
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
/// Tokens of an array of four axes.
[[nodiscard]] std::int64_t tokens_of(const Array& array);
/// Bytes of the elements (MR-A7).
[[nodiscard]] std::int64_t bytes_of(const Array& array);

/// A bound of MR-A2 within 0 to tokens.
[[nodiscard]] std::int64_t bound(std::int64_t at, std::int64_t tokens);
/// Tokens [begin, end), bounds as in MR-A2. The same elements, not a copy.
[[nodiscard]] Array sliced(const Array& array, std::int64_t begin, std::int64_t end);
/// `array` with `rows` in the place of tokens [begin, end), cast to its type (MR-A3).
/// Returns  nothing where they do not fit.
[[nodiscard]] std::optional<Array> overwritten(const Array& array, std::int64_t begin,
                                               std::int64_t end, const Array& rows);
/// One behind the other, in the wider type (MR-A4). Returns  nothing where they do not fit.
[[nodiscard]] std::optional<Array> concatenated(const Array& first, const Array& second);
/// Zeros of the shape of `like`, but `tokens` of them (MR-A5). Returns  nothing below 0.
[[nodiscard]] std::optional<Array> zeros(const Array& like, std::int64_t tokens);

/// Whether B, H and D are alike.
[[nodiscard]] bool same_rows(const Array& a, const Array& b);
/// f16 and bf16 have a rank below f32: the wider type of two holds the values of both.
[[nodiscard]] bool wider(DType a, DType b);

}  // namespace kvo::snapshot
