#include "reference/dynamic/tensors.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/values/check.hpp"

namespace kvo::dynamic {
namespace {

/// A tensor as `outer` pieces of `size` entries of `bytes` each, along an axis.
struct Pieces {
  std::size_t outer = 1;
  std::size_t size = 0;
  std::size_t bytes = 0;
};

Pieces pieces_of(const Tensor& tensor, std::size_t axis) {
  KVO_CHECK(axis >= 1 && axis <= tensor.shape.size());
  const std::size_t at = tensor.shape.size() - axis;
  Pieces pieces{.bytes = dtype_bytes(tensor.dtype)};
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    const auto size = static_cast<std::size_t>(tensor.shape[i]);
    if (i < at) pieces.outer *= size;
    if (i == at) pieces.size = size;
    if (i > at) pieces.bytes *= size;
  }
  return pieces;
}

bool is_empty(const Tensor& tensor) {
  return tensor.shape.size() == 1 && tensor.shape[0] == 0;
}

/// Entries [begin, begin + count) of every piece go to `to`, from entry `at` on.
void copy_entries(const Tensor& from, Tensor& to, std::size_t axis, std::size_t begin,
                  std::size_t count, std::size_t at) {
  const Pieces source = pieces_of(from, axis);
  const Pieces target = pieces_of(to, axis);
  for (std::size_t piece = 0; piece < source.outer; ++piece)
    std::copy_n(&*from.bytes.begin() + (piece * source.size + begin) * source.bytes,
                count * source.bytes,
                &*to.bytes.begin() + (piece * target.size + at) * source.bytes);
}

}  // namespace

Tensor empty() {
  return make_tensor({0});
}

Result<Tensor> zeros(const Shape& shape) {
  const auto count = element_count(shape);
  if (!count || *count > kMostElements)
    return fail(Code::kPrecondition, "a tensor of more than 2^24 elements");
  return make_tensor(shape);
}

std::int64_t size_of(const Tensor& tensor, std::size_t axis) {
  KVO_CHECK(axis >= 1 && axis <= tensor.shape.size());
  return tensor.shape[tensor.shape.size() - axis];
}

Result<Tensor> concat(const Tensor& first, const Tensor& second, std::size_t axis) {
  if (is_empty(first)) return second;
  if (is_empty(second)) return first;
  if (first.shape.size() != second.shape.size())
    return fail(Code::kBadShape, "tensors have different numbers of axes");
  const std::size_t at = first.shape.size() - axis;
  for (std::size_t i = 0; i < first.shape.size(); ++i)
    if (i != at && first.shape[i] != second.shape[i])
      return fail(Code::kBadShape, "axis " + std::to_string(i) + " is " +
                                       std::to_string(second.shape[i]) + ", not " +
                                       std::to_string(first.shape[i]));
  Shape shape = first.shape;
  shape[at] += second.shape[at];
  auto joined = zeros(shape);
  if (!joined || joined->bytes.empty()) return joined;
  const auto size = static_cast<std::size_t>(first.shape[at]);
  if (!first.bytes.empty()) copy_entries(first, *joined, axis, 0, size, 0);
  if (!second.bytes.empty())
    copy_entries(second, *joined, axis, 0, static_cast<std::size_t>(second.shape[at]), size);
  return joined;
}

Tensor slice(const Tensor& tensor, std::size_t axis, std::int64_t begin,
             std::optional<std::int64_t> end) {
  const std::int64_t size = size_of(tensor, axis);
  const auto bound = [size](std::int64_t at) {
    return std::clamp(at < 0 ? at + size : at, std::int64_t{0}, size);
  };
  const std::int64_t first = bound(begin);
  const std::int64_t count = std::max<std::int64_t>(bound(end.value_or(size)) - first, 0);
  Shape shape = tensor.shape;
  shape[shape.size() - axis] = count;
  Tensor part = make_tensor(shape, tensor.dtype);
  if (!part.bytes.empty())
    copy_entries(tensor, part, axis, static_cast<std::size_t>(first),
                 static_cast<std::size_t>(count), 0);
  return part;
}

Result<Tensor> select_rows(const Tensor& tensor, std::span<const std::int64_t> rows) {
  Shape shape = tensor.shape;
  const std::int64_t size = shape[0];
  for (const std::int64_t row : rows)
    if (row < 0 || row >= size)
      return fail(Code::kOutOfRange, "row " + std::to_string(row) + " of " + std::to_string(size));
  shape[0] = std::ssize(rows);
  auto selected = zeros(shape);
  if (!selected || selected->bytes.empty()) return selected;
  for (std::size_t at = 0; at < rows.size(); ++at)
    copy_entries(tensor, *selected, tensor.shape.size(), static_cast<std::size_t>(rows[at]), 1, at);
  return selected;
}

Result<Tensor> index_rows(const Tensor& tensor, std::span<const std::int64_t> rows) {
  std::vector<std::int64_t> counted(rows.begin(), rows.end());
  for (std::int64_t& row : counted) {
    if (row < -tensor.shape[0]) return fail(Code::kOutOfRange, "row " + std::to_string(row));
    if (row < 0) row += tensor.shape[0];
  }
  return select_rows(tensor, counted);
}

Result<Tensor> index_rows_unless_empty(const Tensor& tensor, std::span<const std::int64_t> rows) {
  if (tensor.elements() > 0 || tensor.shape[0] == 0) return index_rows(tensor, rows);
  Shape shape = tensor.shape;
  shape[0] = std::ssize(rows);
  return zeros(shape);
}

Result<Tensor> repeat_rows(const Tensor& tensor, std::int64_t repeats) {
  if (repeats < 0)
    return fail(Code::kOutOfRange, "repeats " + std::to_string(repeats) + ", at least 0");
  if (tensor.shape[0] > 0 && repeats > kMostElements / tensor.shape[0])
    return fail(Code::kPrecondition, "more than 2^24 rows");
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < tensor.shape[0]; ++row)
    rows.insert(rows.end(), static_cast<std::size_t>(repeats), row);
  return select_rows(tensor, rows);
}

Result<Tensor> broadcast(const Tensor& tensor, const Shape& shape) {
  Tensor grown = tensor;
  if (tensor.shape.size() != shape.size()) return fail(Code::kBadShape, "number of axes");
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (grown.shape[i] == shape[i]) continue;
    if (grown.shape[i] != 1)
      return fail(Code::kBadShape, "axis " + std::to_string(i) + " is " +
                                       std::to_string(grown.shape[i]) + ", not " +
                                       std::to_string(shape[i]));
    Shape wider = grown.shape;
    wider[i] = shape[i];
    auto repeated = zeros(wider);
    if (!repeated) return repeated;
    if (!repeated->bytes.empty())
      for (std::int64_t at = 0; at < shape[i]; ++at)
        copy_entries(grown, *repeated, shape.size() - i, 0, 1, static_cast<std::size_t>(at));
    grown = *std::move(repeated);
  }
  return grown;
}

}  // namespace kvo::dynamic
