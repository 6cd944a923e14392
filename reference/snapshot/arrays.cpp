#include "reference/snapshot/arrays.hpp"

#include <algorithm>
#include <utility>

namespace kvo::snapshot {

std::int64_t bound(std::int64_t at, std::int64_t tokens) {
  return std::clamp(at < 0 ? at + tokens : at, std::int64_t{0}, tokens);
}

namespace {

// One element to another type; bit by bit to the same.
void put_element(DType to_type, std::byte* to, DType from_type, const std::byte* from) {
  if (to_type == from_type)
    std::copy_n(from, dtype_bytes(from_type), to);
  else
    store_element(to_type, load_element(from_type, from), to);
}

// Writes `rows`, repeated if they are one, behind token `begin` of `into`.
void write_rows(Tensor& into, std::int64_t begin, std::int64_t count, const Array& rows) {
  const Tensor from = materialize(rows.view);
  const std::int64_t tokens = into.shape[kTokenAxis];
  const std::int64_t given = from.shape[kTokenAxis];
  const std::int64_t dim = into.shape[3];
  for (std::int64_t plane = 0; plane < into.shape[0] * into.shape[1]; ++plane)
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t d = 0; d < dim; ++d) {
        const auto source =
            static_cast<std::size_t>((plane * given + (given == 1 ? 0 : i)) * dim + d);
        const auto target = static_cast<std::size_t>((plane * tokens + begin + i) * dim + d);
        put_element(into.dtype, into.bytes.data() + target * dtype_bytes(into.dtype), from.dtype,
                    from.bytes.data() + source * dtype_bytes(from.dtype));
      }
}

Shape with_tokens(Shape shape, std::int64_t tokens) {
  shape[kTokenAxis] = tokens;
  return shape;
}

// Elements that say what those of `like` say.
Array like_of(const Array& like, Tensor tensor) {
  Array array = array_of(std::move(tensor));
  array.codes = like.codes;
  return array;
}

}  // namespace

Array array_of(Tensor tensor) {
  auto kept = std::make_shared<const Tensor>(std::move(tensor));
  return {view_of(*kept), kept};
}

Tensor shown(const Array& array) {
  Tensor rows = materialize(array.view);
  if (!array.codes) return rows;
  Shape shape = rows.shape;
  shape.back() = array.codes->dim;
  return show_rows(array.codes->format, std::move(shape), rows.bytes.data());
}

std::optional<Array> stored(const StorageFormat& format, const Array& rows) {
  if (format.type == StorageType::kF32) return rows;
  if (rows.view.dtype != DType::kF32 || rows.view.shape.size() != kArrayAxes) return std::nullopt;
  const Tensor given = materialize(rows.view);
  const std::int64_t dim = given.shape.back();
  Shape shape = given.shape;
  shape.back() = stored_dim(format, dim);
  if (!element_count(shape)) return std::nullopt;  // without tokens any dim can come in
  const bool codes = in_groups(format.type);
  Tensor made = make_tensor(std::move(shape), codes ? kCodeByte : dtype_of(format.type));
  store_rows(format, dim, given.floats(), made.bytes.data());
  Array array = array_of(std::move(made));
  if (codes) array.codes = Codes{format, dim};
  return array;
}

std::int64_t stored_dim(const StorageFormat& format, std::int64_t dim) {
  if (!in_groups(format.type)) return dim;
  return static_cast<std::int64_t>(stored_bytes(format, static_cast<std::size_t>(dim)));
}

std::int64_t tokens_of(const Array& array) {
  return array.view.shape[kTokenAxis];
}

std::int64_t bytes_of(const Array& array) {
  return element_count(array.view.shape).value_or(0) *
         static_cast<std::int64_t>(dtype_bytes(array.view.dtype));
}

Array sliced(const Array& array, std::int64_t begin, std::int64_t end) {
  const std::int64_t tokens = tokens_of(array);
  const std::int64_t from = bound(begin, tokens);
  Array part = array;
  part.view.shape[kTokenAxis] = std::max<std::int64_t>(bound(end, tokens) - from, 0);
  part.view.data += from * array.view.strides[kTokenAxis] *
                    static_cast<std::int64_t>(dtype_bytes(array.view.dtype));
  return part;
}

std::optional<Array> overwritten(const Array& array, std::int64_t begin, std::int64_t end,
                                 const Array& rows) {
  const std::int64_t from = bound(begin, tokens_of(array));
  const std::int64_t count = std::max<std::int64_t>(bound(end, tokens_of(array)) - from, 0);
  if (!same_rows(array, rows) || (tokens_of(rows) != count && tokens_of(rows) != 1))
    return std::nullopt;
  Tensor whole = materialize(array.view);
  write_rows(whole, from, count, rows);
  return like_of(array, std::move(whole));
}

std::optional<Array> concatenated(const Array& first, const Array& second) {
  if (!same_rows(first, second)) return std::nullopt;
  const DType type =
      wider(second.view.dtype, first.view.dtype) ? second.view.dtype : first.view.dtype;
  const std::int64_t tokens = tokens_of(first) + tokens_of(second);
  Tensor whole = make_tensor(with_tokens(first.view.shape, tokens), type);
  write_rows(whole, 0, tokens_of(first), first);
  write_rows(whole, tokens_of(first), tokens_of(second), second);
  return like_of(first, std::move(whole));
}

std::optional<Array> zeros(const Array& like, std::int64_t tokens) {
  if (tokens < 0) return std::nullopt;
  return like_of(like, make_tensor(with_tokens(like.view.shape, tokens), like.view.dtype));
}

bool same_rows(const Array& a, const Array& b) {
  return std::ranges::equal(with_tokens(a.view.shape, 0), with_tokens(b.view.shape, 0)) &&
         a.codes == b.codes;
}

bool wider(DType a, DType b) {
  return dtype_bytes(a) > dtype_bytes(b);
}

}  // namespace kvo::snapshot
