#include "optimized/positional/rows.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <optional>

#include "optimized/memory/halves.hpp"

namespace kvo::optimized {
namespace {

ZeroedBytes make_rows(const LayerRows::Plan& plan, std::int64_t heads, std::int64_t dim) {
  const std::array<std::int64_t, 3> shape{plan.cells, heads, dim};
  const std::optional<std::int64_t> count = element_count(shape);
  const auto most = std::numeric_limits<std::int64_t>::max() / 4;
  if (!count || *count > most) throw std::bad_alloc();
  return make_zeroed(static_cast<std::size_t>(*count) * dtype_bytes(plan.dtype));
}

/// Rows of `width` floats to the rows of cells.
void put_rows(DType dtype, std::span<const std::int32_t> targets, std::span<const float> rows,
              std::byte* to) {
  const std::size_t width = rows.size() / targets.size();
  const std::size_t bytes = width * dtype_bytes(dtype);
  // Neighbours in the batch are mostly neighbours in the pool.
  for (std::size_t begin = 0, end = 0; begin < targets.size(); begin = end) {
    for (end = begin + 1; end < targets.size() && targets[end] == targets[end - 1] + 1;) ++end;
    narrow(dtype, rows.subspan(begin * width, (end - begin) * width),
           to + static_cast<std::size_t>(targets[begin]) * bytes);
  }
}

template <std::uint16_t (*kConvert)(float)>
struct AsHalf {
  using Cell = std::uint16_t;
  [[nodiscard]] static Cell of(float value) { return kConvert(value); }
};
struct AsFloat {
  using Cell = float;
  [[nodiscard]] static Cell of(float value) { return value; }
};

/// The same to columns, for a row of `rows` for each token. A tile of tokens at a time: a line of
/// the processor's cache is then read for sixteen columns, and written for sixteen tokens.
template <class As, class CellOf>
void put_columns_as(std::int64_t cells, std::size_t tokens, std::span<const float> rows,
                    std::byte* to, CellOf&& cell_of) {
  constexpr std::size_t kTile = 16;
  const std::size_t width = rows.size() / tokens;
  constexpr std::size_t bytes = sizeof(typename As::Cell);
  for (std::size_t tile = 0; tile < tokens; tile += kTile) {
    const std::size_t end = std::min(tokens, tile + kTile);
    for (std::size_t i = 0; i < width; ++i) {
      std::byte* const line = to + i * static_cast<std::size_t>(cells) * bytes;
      for (std::size_t token = tile; token < end; ++token) {
        const typename As::Cell cell = As::of(rows[token * width + i]);
        std::memcpy(line + cell_of(token) * bytes, &cell, bytes);
      }
    }
  }
}

template <class CellOf>
void put_columns(const LayerRows::Plan& plan, std::size_t tokens, std::span<const float> rows,
                 std::byte* to, CellOf&& cell_of) {
  if (plan.dtype == DType::kF32)
    put_columns_as<AsFloat>(plan.cells, tokens, rows, to, cell_of);
  else if (plan.dtype == DType::kF16)
    put_columns_as<AsHalf<to_f16>>(plan.cells, tokens, rows, to, cell_of);
  else
    put_columns_as<AsHalf<to_bf16>>(plan.cells, tokens, rows, to, cell_of);
}

template <class As>
void narrow_halves(std::span<const float> from, std::byte* to) {
  for (const float value : from) {
    const std::uint16_t half = As::of(value);
    std::memcpy(to, &half, sizeof(half));
    to += sizeof(half);
  }
}

}  // namespace

ZeroedBytes make_zeroed(std::size_t bytes) {
  constexpr std::size_t kMost = std::size_t{4} << 30U;
  if (bytes > kMost) throw std::bad_alloc();
  ZeroedBytes made(static_cast<std::byte*>(std::calloc(std::max<std::size_t>(bytes, 1), 1)));
  if (!made) throw std::bad_alloc();
  return made;
}

void narrow(DType dtype, std::span<const float> from, std::byte* to) {
  if (dtype == DType::kF32) {
    std::memcpy(to, from.data(), from.size_bytes());
  } else if (dtype == DType::kF16) {
    narrow_halves<AsHalf<to_f16>>(from, to);
  } else {
    narrow_halves<AsHalf<to_bf16>>(from, to);
  }
}

LayerRows::LayerRows(const Plan& plan, const Form& form)
    : plan_(plan),
      form_(form),
      k_(make_rows(plan, form.heads, form.k_dim)),
      v_(make_rows(plan, form.heads, form.v_dim)) {
  key_bytes_ = static_cast<std::size_t>(form.heads * form.k_dim) * dtype_bytes(plan.dtype);
}

void LayerRows::put(std::span<const std::int32_t> targets, std::span<const float> k,
                    std::span<const float> v) {
  if (targets.empty()) return;
  put_rows(plan_.dtype, targets, k, k_.get());
  if (plan_.permuted_v) {
    put_columns(plan_, targets.size(), v, v_.get(),
                [&](std::size_t token) { return static_cast<std::size_t>(targets[token]); });
  } else {
    put_rows(plan_.dtype, targets, v, v_.get());
  }
}

void LayerRows::put_all(std::span<const float> k, std::span<const float> v) {
  narrow(plan_.dtype, k, k_.get());
  if (plan_.permuted_v) {
    put_columns(plan_, static_cast<std::size_t>(plan_.cells), v, v_.get(),
                [](std::size_t token) { return token; });
  } else {
    narrow(plan_.dtype, v, v_.get());
  }
}

StridedView LayerRows::k(const CellRange& range) const {
  StridedView rows{{range.size(), form_.heads, form_.k_dim},
                   {form_.heads * form_.k_dim, form_.k_dim, 1},
                   plan_.dtype,
                   k_.get()};
  if (!range.empty()) rows.data += static_cast<std::size_t>(range.low) * key_bytes_;
  return rows;
}

StridedView LayerRows::v(const CellRange& range) const {
  const std::int64_t width = form_.heads * form_.v_dim;
  StridedView rows{
      {range.size(), form_.heads, form_.v_dim}, {width, form_.v_dim, 1}, plan_.dtype, v_.get()};
  if (plan_.permuted_v) {
    rows.shape = {form_.heads, form_.v_dim, range.size()};
    rows.strides = {form_.v_dim * plan_.cells, plan_.cells, 1};
  }
  const std::int64_t first = range.empty() ? 0 : range.low * (plan_.permuted_v ? 1 : width);
  rows.data += static_cast<std::size_t>(first) * dtype_bytes(plan_.dtype);
  return rows;
}

void LayerRows::load_keys(std::int64_t first, std::span<float> to) const {
  const std::byte* from = k_.get() + static_cast<std::size_t>(first) * key_bytes_;
  const std::size_t bytes = dtype_bytes(plan_.dtype);
  for (float& value : to) {
    value = load_element(plan_.dtype, from);
    from += bytes;
  }
}

}  // namespace kvo::optimized
