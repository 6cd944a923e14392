#include "optimized/views/packed_mirror.hpp"

#include <algorithm>
#include <utility>

#include "optimized/memory/convert.hpp"

namespace kvo::optimized {

using views::Options;
using views::PackedStride;
using views::PackedView;
using views::View;

namespace {

constexpr std::size_t kSlabCells = (std::size_t{16} << 20U) / sizeof(float);

std::size_t side_cells(const Options& options) {
  return static_cast<std::size_t>(options.block_size * options.kv_dim());
}

// Where more than this is packed at once, it is read again only after the caches have forgotten it.
constexpr std::int64_t kStreamedCells = (std::int64_t{2} << 20U) / std::int64_t{sizeof(float)};

// Where a block is packed to, and which of its tokens.
struct Part {
  std::int64_t stride;
  std::int64_t begin;
  std::int64_t end;
  bool stream;
};

// The cells are written head after head, from front to back.
void pack_side(const Options& options, const Part& part, float* to, const std::byte* from) {
  const std::int64_t dim = options.head_dim;
  const std::int64_t width = options.kv_dim();
  const std::int64_t tokens = part.end - part.begin;
  const auto size = static_cast<std::size_t>(dim);
  const std::size_t row_bytes = stored_bytes(options.storage, size);
  const std::size_t token_bytes = options.token_bytes();
  const std::byte* row = from + static_cast<std::size_t>(part.begin) * token_bytes;
  for (std::int64_t h = 0; h < options.num_kv_heads; ++h, row += row_bytes) {
    float* head = to + (h * part.stride + part.begin) * dim;
    if (options.storage.type == StorageType::kF32) {
      const auto* rows = reinterpret_cast<const float*>(row);  // NOLINT: cells of that type
      const Rows2d<const float> source{rows, width};
      (part.stream ? copy_rows_past_caches : copy_rows)({head, dim}, source, tokens, dim);
      continue;
    }
    const std::byte* stored = row;
    for (std::int64_t t = 0; t < tokens; ++t, head += dim, stored += token_bytes)
      decode_rows(options.storage, size, stored, std::span(head, size));
  }
}

}  // namespace

std::span<const PackedView> PackedMirror::pack(const Options& options,
                                               std::span<const View> views) {
  if (views.empty()) return {};
  const std::int64_t size = options.block_size;
  grow(options, views.size());
  const std::int64_t end = views.back().start + views.back().length;
  const bool by_length = options.packed_stride == PackedStride::kLength;
  // Where heads lie apart by the length of a block, its cells move when it gets longer.
  std::int64_t at = std::min(packed_, end);
  if (by_length) at -= at % size;
  shown_.resize(static_cast<std::size_t>(at / size));
  const bool stream = (end - at) * options.kv_dim() > kStreamedCells;
  for (auto i = shown_.size(); i < views.size(); ++i) {
    const View& view = views[i];
    const std::int64_t stride = by_length ? view.length : size;
    const Part part{stride, std::max<std::int64_t>(at - view.start, 0), view.length, stream};
    float* k = blocks_[i];
    float* v = k + side_cells(options);
    pack_side(options, part, k, view.k);
    pack_side(options, part, v, view.v);
    const auto cells = static_cast<std::size_t>(stride * options.kv_dim());
    shown_.push_back({view.start,
                      view.length,
                      size,
                      options.head_dim,
                      options.num_kv_heads,
                      {k, cells},
                      {v, cells}});
  }
  if (stream) finish_copies_past_caches();
  packed_ = end;
  return shown_;
}

void PackedMirror::grow(const Options& options, std::size_t blocks) {
  shown_.reserve(blocks);
  if (blocks_.size() >= blocks) return;
  const std::size_t block = 2 * side_cells(options);
  // As many again as there are, up to what one allocation is worth.
  const std::size_t more = std::min(blocks_.size(), std::max<std::size_t>(1, kSlabCells / block));
  const std::size_t made = std::max(blocks - blocks_.size(), more);
  const std::size_t stride = block + guard_cells(block);
  Cells slab = make_cells(made * stride);
  blocks_.reserve(blocks_.size() + made);
  slabs_.push_back(std::move(slab));
  for (std::size_t i = 0; i < made; ++i) {
    blocks_.push_back(slabs_.back().get() + i * stride);
    put_guard(blocks_.back(), block);
  }
}

void PackedMirror::clear() {
  *this = PackedMirror();
}

}  // namespace kvo::optimized
