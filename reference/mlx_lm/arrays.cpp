#include "reference/mlx_lm/arrays.hpp"

#include <algorithm>
#include <utility>

#include "reference/contract/values/strided_view.hpp"

namespace kvo::mlx_lm {
namespace {

// An array seen along one axis: outer * size * inner bytes.
struct Along {
  std::int64_t outer = 1;
  std::int64_t size = 0;
  std::int64_t inner = 0;  ///< bytes

  Along(const Tensor& tensor, std::size_t axis) {
    if (axis >= tensor.shape.size()) throw Misuse("too few axes");
    for (std::size_t i = 0; i < axis; ++i) outer *= tensor.shape[i];
    size = tensor.shape[axis];
    inner = static_cast<std::int64_t>(dtype_bytes(tensor.dtype));
    for (std::size_t i = axis + 1; i < tensor.shape.size(); ++i) inner *= tensor.shape[i];
  }
};

// An array with `count` entries along an axis: entry j is entry source(outer, j), or zeros where
// that is negative.
template <class Source>
Tensor gathered(const Tensor& from, std::size_t axis, std::int64_t count, const Source& source) {
  const Along old(from, axis);
  Shape shape = from.shape;
  shape[axis] = count;
  Tensor out = zeros(std::move(shape), from.dtype);
  for (std::int64_t outer = 0; outer < old.outer; ++outer)
    for (std::int64_t j = 0; j < count; ++j)
      if (const std::int64_t i = source(outer, j); i >= 0)
        std::copy_n(from.bytes.begin() + (outer * old.size + i) * old.inner, old.inner,
                    out.bytes.begin() + (outer * count + j) * old.inner);
  return out;
}

Tensor cast(const Tensor& from, DType type) {
  if (from.dtype == type) return from;
  if (is_whole(from.dtype) || is_whole(type)) throw Misuse("dtype");
  Tensor out = make_tensor(from.shape, type);
  for (std::size_t i = 0; i < static_cast<std::size_t>(from.elements()); ++i)
    store_element(type, load_element(from.dtype, &from.bytes[i * dtype_bytes(from.dtype)]),
                  &out.bytes[i * dtype_bytes(type)]);
  return out;
}

std::int64_t modulo(std::int64_t number, std::int64_t size) {
  return (number % size + size) % size;
}

}  // namespace

Array array_of(Tensor tensor) {
  return std::make_shared<Tensor>(std::move(tensor));
}

Array clone(const Array& array) {
  return array ? array_of(*array) : nullptr;
}

std::int64_t slots(const Array& array) {
  if (!array || array->shape.size() != kAxes) throw Misuse("no array of four axes");
  return array->shape[kSlotAxis];
}

std::int64_t bytes_of(const Array& array) {
  return array ? std::ssize(array->bytes) : 0;
}

std::int64_t bound(std::int64_t at, std::int64_t size) {
  return std::clamp(at < 0 ? at + size : at, std::int64_t{0}, size);
}

Tensor sliced(const Tensor& from, std::int64_t begin, std::int64_t end, std::size_t axis) {
  const std::int64_t size = Along(from, axis).size;
  const std::int64_t first = bound(begin, size);
  return gathered(from, axis, std::max<std::int64_t>(bound(end, size) - first, 0),
                  [&](std::int64_t /*outer*/, std::int64_t j) { return first + j; });
}

Tensor zeros(Shape shape, DType type) {
  const auto count = element_count(shape);
  if (!count || *count > kMostElements) throw Misuse("a size is negative or too large");
  return make_tensor(std::move(shape), type);
}

Tensor zero_slots(Shape shape, std::int64_t count, DType type) {
  shape[kSlotAxis] = count;
  return zeros(std::move(shape), type);
}

Tensor fitted(const Tensor& entries, const Tensor& into, std::int64_t begin, std::int64_t end,
              std::size_t axis) {
  const std::int64_t size = Along(into, axis).size;
  Shape shape = into.shape;
  shape[axis] = std::max<std::int64_t>(bound(end, size) - bound(begin, size), 0);
  if (entries.shape.size() != shape.size()) throw Misuse("what is assigned has other axes");
  Tensor out = cast(entries, into.dtype);
  for (std::size_t each = 0; each < shape.size(); ++each) {
    if (out.shape[each] == shape[each]) continue;
    if (out.shape[each] != 1) throw Misuse("what is assigned has another shape");
    out = gathered(out, each, shape[each],
                   [](std::int64_t /*outer*/, std::int64_t /*j*/) { return 0; });
  }
  return out;
}

void overwrite(Tensor& into, std::int64_t begin, const Tensor& entries, std::size_t axis) noexcept {
  const Along target(into, axis);
  const Along given(entries, axis);
  const std::int64_t run = given.size * given.inner;
  for (std::int64_t outer = 0; outer < given.outer; ++outer)
    std::copy_n(
        entries.bytes.begin() + outer * run, run,
        into.bytes.begin() + (outer * target.size + bound(begin, target.size)) * target.inner);
}

Tensor joined(const Tensor& first, const Tensor& second, std::size_t axis) {
  if (first.dtype != second.dtype)
    return joined(cast(first, DType::kF32), cast(second, DType::kF32), axis);
  const std::int64_t own = Along(first, axis).size;
  Shape shape = second.shape;
  if (shape.size() > axis) shape[axis] = own;
  if (shape != first.shape) throw Misuse("arrays that are joined differ in shape");
  const Along more(second, axis);
  Tensor out = gathered(first, axis, own + more.size,
                        [&](std::int64_t /*outer*/, std::int64_t j) { return j < own ? j : -1; });
  for (std::int64_t outer = 0; outer < more.outer; ++outer)
    std::copy_n(second.bytes.begin() + outer * more.size * more.inner, more.size * more.inner,
                out.bytes.begin() + (outer * (own + more.size) + own) * more.inner);
  return out;
}

Tensor rows_of(const Tensor& from, const Ints& rows) {
  const std::int64_t size = Along(from, kRowAxis).size;
  for (const std::int64_t row : rows)
    if (row < -size || row >= size) throw Misuse("no such row");
  return gathered(from, kRowAxis, std::ssize(rows), [&](std::int64_t /*outer*/, std::int64_t j) {
    return modulo(rows[static_cast<std::size_t>(j)], size);
  });
}

Tensor rotated(const Tensor& from, const Ints& shifts) {
  const std::int64_t size = Along(from, kSlotAxis).size;
  const std::int64_t rows = from.shape[kRowAxis];
  const auto all = static_cast<std::size_t>(rows);
  if (rows == 1 && shifts.size() > 1) return rotated(rows_of(from, Ints(shifts.size())), shifts);
  if (shifts.size() == 1 && rows != 1) return rotated(from, Ints(all, shifts.front()));
  if (shifts.size() != all) throw Misuse("not one shift a row");
  return gathered(from, kSlotAxis, size, [&](std::int64_t outer, std::int64_t j) {
    return modulo(j - shifts[static_cast<std::size_t>(outer / from.shape[1])], size);
  });
}

Tensor rotated_left(const Tensor& from, std::int64_t shift) {
  return rotated(from, Ints(static_cast<std::size_t>(from.shape[kRowAxis]), -shift));
}

Tensor shifted(const Tensor& from, std::int64_t left, std::int64_t right) {
  const Tensor cut = right < 0 ? sliced(from, 0, right) : from;
  const std::int64_t size = cut.shape[kSlotAxis];
  return gathered(cut, kSlotAxis, left + size + std::max<std::int64_t>(right, 0),
                  [&](std::int64_t /*outer*/, std::int64_t j) {
                    return j >= left && j < left + size ? j - left : -1;
                  });
}

Tensor ints_of(const Ints& numbers) {
  Tensor out = make_tensor({std::ssize(numbers)}, DType::kI32);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = static_cast<std::int32_t>(numbers[i]);
    std::copy_n(reinterpret_cast<const std::byte*>(&number), sizeof number,
                &out.bytes[i * sizeof number]);
  }
  return out;
}

Ints sum(const Ints& a, const Ints& b, std::int64_t sign) {
  if (a.size() != b.size() && a.size() != 1 && b.size() != 1) throw Misuse("lists of two lengths");
  Ints out(a.size() == 1 ? b.size() : a.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = a[a.size() == 1 ? 0 : i] + sign * b[b.size() == 1 ? 0 : i];
  return out;
}

Ints sum(const Ints& a, std::int64_t more) {
  Ints out = a;
  for (std::int64_t& number : out) number += more;
  return out;
}

Tensor Mask::matrix() const {
  Tensor out = zeros({queries, columns()}, DType::kBool);
  for (std::int64_t i = 0; i < queries; ++i)
    for (std::int64_t j = 0; j < columns(); ++j)
      out.bytes[static_cast<std::size_t>(i * columns() + j)] = std::byte{shows(i, j)};
  return out;
}

Tensor Mask::matrix(const Ints& padding) const {
  Tensor out = zeros({std::ssize(padding), 1, queries, columns()}, DType::kBool);
  std::size_t at = 0;
  for (const std::int64_t pad : padding)
    for (std::int64_t i = 0; i < queries; ++i)
      for (std::int64_t j = 0; j < columns(); ++j)
        out.bytes[at++] = std::byte{j >= pad && shows(i, j)};
  return out;
}

}  // namespace kvo::mlx_lm
