#include "optimized/snapshot/row_encoder.hpp"

#include <array>
#include <cstdint>
#include <utility>

#include "optimized/memory/convert.hpp"

namespace kvo::optimized {

using snapshot::Array;
using snapshot::Pair;

namespace {

/// Rows of all tokens to [S, B, H] rows of `row_bytes`.
void encode_tokens(const StorageFormat& format, const StridedView& rows, std::size_t row_bytes,
                   std::byte* to) {
  const std::int64_t heads = rows.shape[1];
  const auto dim = static_cast<std::size_t>(rows.shape[3]);
  const auto* const cells = reinterpret_cast<const float*>(rows.data);
  const bool in_a_row = (rows.strides[1] == rows.shape[3] || heads == 1) &&
                        (rows.strides[0] == heads * rows.shape[3] || rows.shape[0] == 1);
  const auto width = static_cast<std::size_t>(rows.shape[0] * heads) * dim;
  const std::size_t bytes = width / dim * row_bytes;
  for (std::int64_t s = 0; s < rows.shape[2]; ++s) {
    const float* const token = cells + s * rows.strides[2];
    if (in_a_row) {  // as those that come one by one
      encode_rows(format, dim, {token, width}, to);
      to += bytes;
      continue;
    }
    for (std::int64_t b = 0; b < rows.shape[0]; ++b)
      for (std::int64_t h = 0; h < heads; ++h, to += row_bytes)
        encode_rows(format, dim, {token + b * rows.strides[0] + h * rows.strides[1], dim}, to);
  }
}

}  // namespace

bool RowEncoder::takes(const Array& rows) const {
  if (rows.view.dtype != DType::kF32 || rows.view.shape.size() != snapshot::kArrayAxes)
    return false;
  Shape shape = rows.view.shape;
  shape.back() = snapshot::stored_dim(format_, shape.back());
  return element_count(shape).has_value();
}

Array RowEncoder::encoded(const Array& rows, Bytes& bytes) const {
  const bool codes = in_groups(format_.type);
  const std::int64_t dim = rows.view.shape[3];
  const auto row_bytes = stored_bytes(format_, static_cast<std::size_t>(dim));
  const std::int64_t width = snapshot::stored_dim(format_, dim);
  Array made{.view = {rows.view.shape, rows.view.strides,
                      codes ? snapshot::kCodeByte : dtype_of(format_.type), nullptr}};
  made.view.shape[3] = width;
  if (codes) made.codes = snapshot::Codes{format_, dim};
  const std::int64_t elements = *element_count(rows.view.shape);
  if (elements == 0) return made;
  const auto [batch, heads, count] =
      std::array{rows.view.shape[0], rows.view.shape[1], rows.view.shape[2]};
  made.view.strides = {heads * width, width, batch * heads * width, 1};
  if (!bytes || bytes.use_count() > 1) bytes = std::make_shared<std::vector<std::byte>>();
  bytes->resize(static_cast<std::size_t>(batch * heads * count) * row_bytes);
  made.view.data = bytes->data();
  made.memory = bytes;
  if (rows.view.strides[3] == 1) {
    encode_tokens(format_, rows.view, row_bytes, bytes->data());
  } else {
    const Tensor packed = materialize(rows.view);
    encode_tokens(format_, view_of(packed), row_bytes, bytes->data());
  }
  return made;
}

Result<Pair> RowEncoder::encoded(const Array& k, const Array& v, QuirkSet<snapshot::Quirk> quirks) {
  if (!takes(k) || !takes(v))
    return fail(
        quirks.has(snapshot::Quirk::kMisfitIsSilent) ? Code::kPrecondition : Code::kBadShape,
        "k, v: not f32 of four axes");
  Array keys = encoded(k, k_bytes_);
  return Pair{std::move(keys), encoded(v, v_bytes_)};
}

}  // namespace kvo::optimized
