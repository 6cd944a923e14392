// reference/mlx_lm/arrays.hpp: arrays as the caches use them, after those of MLX.
//
// Words    array   an object that several caches may hold: a write changes it for all of them.
//          slot    an index along axis S of [B, H, S, D].
// Errors   a function that the rules let fail throws Misuse.
// Source   rules ML-A1 to ML-A4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "reference/contract/values/result.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo::mlx_lm {

using Array = std::shared_ptr<Tensor>;  ///< null: None
using Ints = std::vector<std::int64_t>;

inline constexpr std::size_t kRowAxis = 0;
inline constexpr std::size_t kSlotAxis = 2;
inline constexpr std::size_t kAxes = 4;
/// Elements of an array, at most.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 24U;

/// A call that Python ends with an exception.
class Misuse : public std::exception {
 public:
  explicit Misuse(Error error) : error_(std::move(error)) {}
  explicit Misuse(const char* detail) : error_(fail(Code::kPrecondition, detail)) {}
  [[nodiscard]] const Error& error() const { return error_; }
  [[nodiscard]] const char* what() const noexcept override { return error_.detail.c_str(); }

 private:
  Error error_;
};

/// An object of its own.
[[nodiscard]] Array array_of(Tensor tensor);
/// Another object with the same content; null of null.
[[nodiscard]] Array clone(const Array& array);
/// The slots of an array. Errors  Misuse: it is None, or has not four axes.
[[nodiscard]] std::int64_t slots(const Array& array);
[[nodiscard]] std::int64_t bytes_of(const Array& array);  ///< 0 of null

/// A bound of a slice in Python, within 0 to `size` (ML-A2).
[[nodiscard]] std::int64_t bound(std::int64_t at, std::int64_t size);
/// Entries [begin, end) of an axis, bounds as in Python (ML-A2).
[[nodiscard]] Tensor sliced(const Tensor& from, std::int64_t begin, std::int64_t end,
                            std::size_t axis = kSlotAxis);
/// Zeros. Errors  Misuse: a negative size, or more than kMostElements.
[[nodiscard]] Tensor zeros(Shape shape, DType type);
/// Zeros of a shape, but with so many slots. Errors  as zeros.
[[nodiscard]] Tensor zero_slots(Shape shape, std::int64_t count, DType type);
/// What assigning `entries` to [begin, end) of an axis of `into` writes there: of its type, and
/// repeated where they are one of an axis. Errors  Misuse: they do not fit (ML-A2).
[[nodiscard]] Tensor fitted(const Tensor& entries, const Tensor& into, std::int64_t begin,
                            std::int64_t end, std::size_t axis);
/// Writes them at the entries from `begin` on. Requires  fitted(..).
void overwrite(Tensor& into, std::int64_t begin, const Tensor& entries, std::size_t axis) noexcept;
/// One behind the other, in the wider type. Errors  Misuse: other axes differ (ML-A3).
[[nodiscard]] Tensor joined(const Tensor& first, const Tensor& second,
                            std::size_t axis = kSlotAxis);
/// Rows of those numbers, negative ones from the end. Errors  Misuse: there is none.
[[nodiscard]] Tensor rows_of(const Tensor& from, const Ints& rows);
/// Each row rotated right along the slots by its own shift; one shift counts for all rows, and one
/// row for all shifts. Errors  Misuse: other numbers of both.
[[nodiscard]] Tensor rotated(const Tensor& from, const Ints& shifts);
/// All rows rotated left by `shift` slots.
[[nodiscard]] Tensor rotated_left(const Tensor& from, std::int64_t shift);
/// Zeros in front and behind, or behind a cut at the end where `right` is negative (ML-44).
[[nodiscard]] Tensor shifted(const Tensor& from, std::int64_t left, std::int64_t right);

/// 32-bit integers as MLX shows them.
[[nodiscard]] Tensor ints_of(const Ints& numbers);
/// Sum of two lists; one of a single number counts for each of the other.
/// Errors  Misuse: other lengths.
[[nodiscard]] Ints sum(const Ints& a, const Ints& b, std::int64_t sign = 1);
/// Each number and `more`.
[[nodiscard]] Ints sum(const Ints& a, std::int64_t more);

/// The mask of ML-5 for N queries after `offset` tokens, and for a row's padding.
struct Mask {
  std::int64_t queries = 0;
  std::int64_t offset = 0;
  const std::int64_t* window = nullptr;  ///< null: none
  [[nodiscard]] std::int64_t columns() const { return offset + queries < 0 ? 0 : offset + queries; }
  [[nodiscard]] bool shows(std::int64_t query, std::int64_t column) const {
    return column <= offset + query && (window == nullptr || offset + query < column + *window);
  }
  /// [queries, columns]. Errors  as zeros.
  [[nodiscard]] Tensor matrix() const;
  /// [rows, 1, queries, columns] without the columns before a row's padding.
  /// Errors  as zeros.
  [[nodiscard]] Tensor matrix(const Ints& padding) const;
};

}  // namespace kvo::mlx_lm
