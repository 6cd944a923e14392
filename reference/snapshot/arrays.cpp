#include "reference/snapshot/arrays.hpp"

#include <algorithm>
#include <utility>

namespace kvo::snapshot {

std::int64_t bound(std::int64_t at, std::int64_t tokens) {
  return std::clamp(at < 0 ? at + tokens : at, std::int64_t{0}, tokens);
}

namespace {

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
        const float value =
            load_element(from.dtype, from.bytes.data() + source * dtype_bytes(from.dtype));
        store_element(into.dtype, value, into.bytes.data() + target * dtype_bytes(into.dtype));
      }
}

Shape with_tokens(Shape shape, std::int64_t tokens) {
  shape[kTokenAxis] = tokens;
  return shape;
}

}  // namespace

Array array_of(Tensor tensor) {
  auto kept = std::make_shared<const Tensor>(std::move(tensor));
  return {view_of(*kept), kept};
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
  return array_of(std::move(whole));
}

std::optional<Array> concatenated(const Array& first, const Array& second) {
  if (!same_rows(first, second)) return std::nullopt;
  const DType type =
      wider(second.view.dtype, first.view.dtype) ? second.view.dtype : first.view.dtype;
  const std::int64_t tokens = tokens_of(first) + tokens_of(second);
  Tensor whole = make_tensor(with_tokens(first.view.shape, tokens), type);
  write_rows(whole, 0, tokens_of(first), first);
  write_rows(whole, tokens_of(first), tokens_of(second), second);
  return array_of(std::move(whole));
}

std::optional<Array> zeros(const Array& like, std::int64_t tokens) {
  if (tokens < 0) return std::nullopt;
  return array_of(make_tensor(with_tokens(like.view.shape, tokens), like.view.dtype));
}

bool same_rows(const Array& a, const Array& b) {
  return std::ranges::equal(with_tokens(a.view.shape, 0), with_tokens(b.view.shape, 0));
}

bool wider(DType a, DType b) {
  return dtype_bytes(a) > dtype_bytes(b);
}

}  // namespace kvo::snapshot
