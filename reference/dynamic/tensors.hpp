// reference/dynamic/tensors.hpp: the functions of torch that the rules are written with.
//
// Axes are counted from the end: 1 is the last one, 2 that of tokens in keys and values. Rows are
// indices of the first axis. A tensor of shape [0] is torch's empty tensor.
// Errors   kPrecondition: a result of more than kMostElements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reference/contract/values/result.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo::dynamic {

inline constexpr std::int64_t kMostElements = std::int64_t{1} << 24U;
inline constexpr std::size_t kLastAxis = 1;
inline constexpr std::size_t kTokenAxis = 2;

/// The empty tensor, of shape [0].
[[nodiscard]] Tensor empty();
/// Zeros. Errors  kPrecondition also for a negative size.
[[nodiscard]] Result<Tensor> zeros(const Shape& shape);
/// Size of an axis.
[[nodiscard]] std::int64_t size_of(const Tensor& tensor, std::size_t axis);

/// torch.cat of two. The empty tensor adds nothing to any other.
/// Errors  kBadShape: they differ in another axis.
[[nodiscard]] Result<Tensor> concat(const Tensor& first, const Tensor& second, std::size_t axis);
/// tensor[begin:end] of an axis as in Python: negative bounds count from the end, -0 is 0, bounds
/// are clamped.
[[nodiscard]] Tensor slice(const Tensor& tensor, std::size_t axis, std::int64_t begin,
                           std::optional<std::int64_t> end = std::nullopt);
/// torch's index_select(0, rows). Errors  kOutOfRange: a row that there is not, or below 0.
[[nodiscard]] Result<Tensor> select_rows(const Tensor& tensor, std::span<const std::int64_t> rows);
/// tensor[rows]: negative rows count from the end. Errors  kOutOfRange.
[[nodiscard]] Result<Tensor> index_rows(const Tensor& tensor, std::span<const std::int64_t> rows);
/// The same, but torch checks no rows of a tensor that has rows without elements.
[[nodiscard]] Result<Tensor> index_rows_unless_empty(const Tensor& tensor,
                                                     std::span<const std::int64_t> rows);
/// torch's repeat_interleave(repeats, 0): a a b b. Errors  kOutOfRange: below 0.
[[nodiscard]] Result<Tensor> repeat_rows(const Tensor& tensor, std::int64_t repeats);
/// The tensor in a shape with as many axes: an axis of size 1 is repeated.
/// Errors  kBadShape: another size.
[[nodiscard]] Result<Tensor> broadcast(const Tensor& tensor, const Shape& shape);

}  // namespace kvo::dynamic
