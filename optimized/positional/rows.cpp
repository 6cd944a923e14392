#include "optimized/positional/rows.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <type_traits>

#include "optimized/memory/convert.hpp"

namespace kvo::optimized {
namespace {

/// Bytes of the row of one cell.
std::size_t row_bytes(const StorageFormat& storage, std::int64_t heads, std::int64_t dim) {
  return static_cast<std::size_t>(heads) * stored_bytes(storage, static_cast<std::size_t>(dim));
}

ZeroedBytes make_rows(const LayerRows::Plan& plan, std::int64_t heads, std::int64_t dim) {
  const std::array<std::int64_t, 3> shape{plan.cells, heads, dim};
  const std::optional<std::int64_t> count = element_count(shape);
  // No type takes more bytes for an element than a group of one with an offset.
  const auto most = std::numeric_limits<std::int64_t>::max() / 5;
  if (!count || *count > most) throw std::bad_alloc();
  return make_zeroed(static_cast<std::size_t>(plan.cells) * row_bytes(plan.storage, heads, dim));
}

/// Rows of a head each to their storage type (OK-46).
void narrow(const StorageFormat& storage, std::size_t dim, std::span<const float> rows,
            std::byte* to) {
  if (rows.empty()) return;
  encode_rows(storage, dim, rows, to);
}

/// Rows of all heads to those of cells.
void put_rows(const StorageFormat& storage, std::size_t dim, std::span<const std::int32_t> targets,
              std::span<const float> rows, std::byte* to) {
  const std::size_t width = rows.size() / targets.size();
  const std::size_t bytes = width / dim * stored_bytes(storage, dim);
  // Neighbours in the batch are mostly neighbours in the pool.
  for (std::size_t begin = 0, end = 0; begin < targets.size(); begin = end) {
    for (end = begin + 1; end < targets.size() && targets[end] == targets[end - 1] + 1;) ++end;
    narrow(storage, dim, rows.subspan(begin * width, (end - begin) * width),
           to + static_cast<std::size_t>(targets[begin]) * bytes);
  }
}

/// The same to columns, for a row of `rows` for each token. A tile of tokens at a time: a line of
/// the processor's cache is then read for sixteen columns, and written for sixteen tokens. Of these
/// a piece of columns is converted at a time, in one go.
template <class Cell, class CellOf>
void put_columns_as(const LayerRows::Plan& plan, std::size_t tokens, std::span<const float> rows,
                    std::byte* to, CellOf&& cell_of) {
  constexpr std::size_t kTile = 16;
  constexpr std::size_t kPiece = 64;
  constexpr std::size_t kBytes = sizeof(Cell);
  const std::size_t width = rows.size() / tokens;
  std::array<Cell, kTile * kPiece> cells;  // NOLINT(*-member-init): written before it is read
  for (std::size_t tile = 0; tile < tokens; tile += kTile) {
    const std::size_t end = std::min(tokens, tile + kTile);
    for (std::size_t piece = 0; piece < width; piece += kPiece) {
      const std::size_t columns = std::min(kPiece, width - piece);
      const Cell* from = cells.data();
      std::size_t stride = kPiece;
      if constexpr (std::is_same_v<Cell, float>) {  // as they are
        from = rows.data() + tile * width + piece;
        stride = width;
      } else {
        for (std::size_t token = tile; token < end; ++token)
          narrow(
              plan.storage, columns, rows.subspan(token * width + piece, columns),
              std::as_writable_bytes(std::span(cells)).data() + (token - tile) * kPiece * kBytes);
      }
      for (std::size_t i = 0; i < columns; ++i) {
        std::byte* const line = to + (piece + i) * static_cast<std::size_t>(plan.cells) * kBytes;
        for (std::size_t token = tile; token < end; ++token)
          std::memcpy(line + cell_of(token) * kBytes, &from[(token - tile) * stride + i], kBytes);
      }
    }
  }
}

template <class CellOf>
void put_columns(const LayerRows::Plan& plan, std::size_t tokens, std::span<const float> rows,
                 std::byte* to, CellOf&& cell_of) {
  switch (dtype_bytes(plan.dtype())) {
    case 1:
      return put_columns_as<std::uint8_t>(plan, tokens, rows, to, cell_of);
    case 2:
      return put_columns_as<std::uint16_t>(plan, tokens, rows, to, cell_of);
    default:
      return put_columns_as<float>(plan, tokens, rows, to, cell_of);
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

LayerRows::LayerRows(const Plan& plan, const Form& form)
    : plan_(plan),
      form_(form),
      key_bytes_(row_bytes(plan.storage, form.heads, form.k_dim)),
      k_(make_rows(plan, form.heads, form.k_dim)),
      v_(make_rows(plan, form.heads, form.v_dim)) {}

bool LayerRows::has_columns() const {
  return plan_.permuted_v && !in_groups(plan_.storage.type);
}

void LayerRows::put(std::span<const std::int32_t> targets, std::span<const float> k,
                    std::span<const float> v) {
  if (targets.empty()) return;
  put_rows(plan_.storage, static_cast<std::size_t>(form_.k_dim), targets, k, k_.get());
  if (has_columns()) {
    put_columns(plan_, targets.size(), v, v_.get(),
                [&](std::size_t token) { return static_cast<std::size_t>(targets[token]); });
  } else {
    put_rows(plan_.storage, static_cast<std::size_t>(form_.v_dim), targets, v, v_.get());
  }
}

void LayerRows::put_all(std::span<const float> k, std::span<const float> v) {
  narrow(plan_.storage, static_cast<std::size_t>(form_.k_dim), k, k_.get());
  if (has_columns()) {
    put_columns(plan_, static_cast<std::size_t>(plan_.cells), v, v_.get(),
                [](std::size_t token) { return token; });
  } else {
    narrow(plan_.storage, static_cast<std::size_t>(form_.v_dim), v, v_.get());
  }
}

StridedView LayerRows::decoded(const CellRange& range, std::int64_t dim, const std::byte* from,
                               std::vector<float>& to) const {
  const std::int64_t width = form_.heads * dim;
  const auto count = static_cast<std::size_t>(range.size() * width);
  if (to.size() < count) to.resize(count);
  const std::size_t bytes = row_bytes(plan_.storage, form_.heads, dim);
  if (!range.empty())
    decode_rows(plan_.storage, static_cast<std::size_t>(dim),
                from + static_cast<std::size_t>(range.low) * bytes, std::span(to).first(count));
  return {{range.size(), form_.heads, dim},
          {width, dim, 1},
          DType::kF32,
          std::as_bytes(std::span(to)).data()};
}

StridedView LayerRows::k(const CellRange& range) {
  if (in_groups(plan_.storage.type)) return decoded(range, form_.k_dim, k_.get(), shown_k_);
  StridedView rows{{range.size(), form_.heads, form_.k_dim},
                   {form_.heads * form_.k_dim, form_.k_dim, 1},
                   plan_.dtype(),
                   k_.get()};
  if (!range.empty()) rows.data += static_cast<std::size_t>(range.low) * key_bytes_;
  return rows;
}

StridedView LayerRows::v(const CellRange& range) {
  const std::int64_t width = form_.heads * form_.v_dim;
  if (in_groups(plan_.storage.type)) {
    StridedView rows = decoded(range, form_.v_dim, v_.get(), shown_v_);
    if (!plan_.permuted_v) return rows;
    rows.shape = {form_.heads, form_.v_dim, range.size()};
    rows.strides = {form_.v_dim, 1, width};
    return rows;
  }
  StridedView rows{
      {range.size(), form_.heads, form_.v_dim}, {width, form_.v_dim, 1}, plan_.dtype(), v_.get()};
  if (plan_.permuted_v) {
    rows.shape = {form_.heads, form_.v_dim, range.size()};
    rows.strides = {form_.v_dim * plan_.cells, plan_.cells, 1};
  }
  const std::int64_t first = range.empty() ? 0 : range.low * (plan_.permuted_v ? 1 : width);
  rows.data += static_cast<std::size_t>(first) * dtype_bytes(plan_.dtype());
  return rows;
}

void LayerRows::load_keys(std::int64_t first, std::span<float> to) const {
  decode_rows(plan_.storage, static_cast<std::size_t>(form_.k_dim),
              k_.get() + static_cast<std::size_t>(first) * key_bytes_, to);
}

void LayerRows::encode_keys(std::span<const float> keys, std::byte* to) const {
  narrow(plan_.storage, static_cast<std::size_t>(form_.k_dim), keys, to);
}

}  // namespace kvo::optimized
