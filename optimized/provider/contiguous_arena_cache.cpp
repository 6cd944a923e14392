#include "optimized/provider/contiguous_arena_cache.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "optimized/memory/convert.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::optimized {

using provider::Contiguous;
using provider::ContiguousOptions;
using provider::KvPair;
using provider::Quirk;
using provider::Rows;

Result<std::unique_ptr<Contiguous>> ContiguousArenaCache::make(const ContiguousOptions& options,
                                                               QuirkSet<Quirk> quirks) {
  if (Status good = check(options.storage); !good) return good.error();
  const bool aborts = quirks.has(Quirk::kNegativeSizesAbort);
  if (options.num_layers < 0)
    return fail(aborts ? Code::kPrecondition : Code::kOutOfRange, "num_layers");
  if (options.max_seq_len < 0 && !aborts) return fail(Code::kOutOfRange, "max_seq_len");
  return std::make_unique<ContiguousArenaCache>(options, quirks);
}

std::size_t ContiguousArenaCache::cells_for(std::int64_t elements, std::int64_t dim) const {
  const auto count = static_cast<std::size_t>(elements);
  return is_narrow() ? cells_of_bytes(StoredRows::bytes_of(storage_, dim, count)) : count;
}

std::shared_ptr<StoredRows> ContiguousArenaCache::shown(const Buffer& buffer, std::size_t bytes,
                                                        std::int64_t dim) const {
  return std::make_shared<StoredRows>(storage_, dim, std::span(buffer.bytes(), bytes),
                                      buffer.storage);
}

void ContiguousArenaCache::pin(Layer& layer, const Tensor& k, std::size_t cells) {
  Arena arena = arena_;  // The cache changes only when both buffers are there.
  Buffer k_buffer = arena.take(cells, 2 * layers_.size());
  Buffer v_buffer = arena.take(cells, 2 * layers_.size());
  std::shared_ptr<StoredRows> k_rows;
  std::shared_ptr<StoredRows> v_rows;
  if (is_narrow()) {
    k_rows = shown(k_buffer, cells * sizeof(float), k.shape[2]);
    v_rows = shown(v_buffer, cells * sizeof(float), k.shape[2]);
  }
  arena_ = std::move(arena);
  layer.k = std::move(k_buffer);
  layer.v = std::move(v_buffer);
  layer.cells = cells;
  layer.k_rows = std::move(k_rows);
  layer.v_rows = std::move(v_rows);
  layer.batch = k.shape[0];
  layer.dim = k.shape[2];
}

Status ContiguousArenaCache::update(std::int64_t layer, const Rows& rows) {
  if (!has(layer)) return fail(Code::kOutOfRange, "layer");
  if (rows.k == nullptr && has(Quirk::kNullAborts)) return fail(Code::kPrecondition, "k is null");
  if (rows.k == nullptr || rows.k->shape.size() != 3) return fail(Code::kBadShape, "rank");
  const std::int64_t batch = rows.k->shape[0];
  const std::int64_t seq = rows.k->shape[1];
  const std::int64_t dim = rows.k->shape[2];
  Layer& to = layers_[static_cast<std::size_t>(layer)];

  const bool pinned = to.k.storage != nullptr;
  std::int64_t cells = 0;
  std::int64_t end = 0;
  if (pinned && batch != to.batch) return fail(Code::kBadShape, "batch");
  if (pinned && dim != to.dim) return fail(Code::kBadShape, "dim");
  if (!pinned && (__builtin_mul_overflow(batch, max_seq_len_, &cells) ||
                  __builtin_mul_overflow(cells, dim, &cells)))
    return size_error("max_seq_len");
  if (cells < 0) return fail(Code::kPrecondition, "max_seq_len");
  if (__builtin_add_overflow(to.cursor, seq, &end)) return size_error("seq");
  if (end > max_seq_len_) {
    if (!pinned && has(Quirk::kFullPins)) pin(to, *rows.k, cells_for(cells, dim));  // ZF-10
    return fail(Code::kFull);
  }
  if (Status good = check_v(to, rows); !good) return good;
  if (!pinned) pin(to, *rows.k, cells_for(cells, dim));

  if (is_narrow()) {
    store_narrow(to, rows);
    to.cursor = end;
    return {};
  }
  if (!rows.k->bytes.empty()) {
    const std::int64_t run = seq * dim;
    const std::int64_t stride = max_seq_len_ * dim;
    const std::int64_t start = to.cursor * dim;
    will_write({to.v.data() + start, stride}, batch, run);
    copy_rows({to.k.data() + start, stride}, {rows.k->floats().data(), run}, batch, run);
    copy_rows({to.v.data() + start, stride}, {rows.v->floats().data(), run}, batch, run);
  }
  to.cursor = end;
  // Most likely the next layer's token comes now, a row as this one.
  const Layer& next = layers_[layer + 1 < num_layers() ? static_cast<std::size_t>(layer) + 1 : 0];
  for (const Buffer* side : {&next.k, &next.v})
    if (side->storage && next.batch > 0)
      will_write({side->data() + next.cursor * next.dim, max_seq_len_ * next.dim}, next.batch,
                 next.dim);
  return {};
}

void ContiguousArenaCache::store_narrow(const Layer& to, const Rows& rows) {
  if (rows.k->bytes.empty()) return;
  const auto dim = static_cast<std::size_t>(to.dim);
  const std::size_t row_bytes = stored_bytes(storage_, dim);
  const std::size_t run = static_cast<std::size_t>(rows.k->shape[1]) * dim;
  for (std::int64_t b = 0; b < to.batch; ++b) {
    const std::size_t from = static_cast<std::size_t>(b) * run;
    const std::size_t at = static_cast<std::size_t>(b * max_seq_len_ + to.cursor) * row_bytes;
    // K and V of a batch row.
    encode_rows(storage_, dim, rows.k->floats().subspan(from, run), to.k.bytes() + at);
    encode_rows(storage_, dim, rows.v->floats().subspan(from, run), to.v.bytes() + at);
  }
}

Status ContiguousArenaCache::check_v(const Layer& layer, const Rows& rows) const {
  if (rows.v == nullptr)
    return fail(has(Quirk::kNullAborts) ? Code::kPrecondition : Code::kBadShape, "v");
  if (!has(Quirk::kContiguousVIgnored) && rows.v->shape != rows.k->shape)
    return fail(Code::kBadShape, "v");
  if (rows.v->bytes.size() < rows.k->bytes.size()) return fail(Code::kPrecondition, "v is short");
  if (layer.cursor < 0 && rows.k->shape[0] > 0 && rows.k->shape[2] > 0)  // ZF-18
    return fail(Code::kPrecondition, "cursor < 0");
  return {};
}

Result<std::optional<KvPair>> ContiguousArenaCache::get(std::int64_t layer) {
  if (!has(layer)) return std::nullopt;
  const Layer& from = layers_[static_cast<std::size_t>(layer)];
  if (from.cursor <= 0) {
    if (from.cursor < 0 && from.batch > 0 && from.dim > 0)
      return fail(Code::kPrecondition, "cursor < 0");
    return std::nullopt;
  }
  const Shape shape{from.batch, from.cursor, from.dim};
  const bool shares = from.batch == 1 || from.cursor == max_seq_len_;
  if (shares && is_narrow()) return KvPair{{shape, from.k_rows}, {shape, from.v_rows}};
  if (shares)
    return KvPair{{shape, from.k.storage, from.k.offset}, {shape, from.v.storage, from.v.offset}};

  // Without rows there are no buffers whose size would have kept the products below in range.
  if (from.batch == 0) {
    const auto none = std::make_shared<ArenaStorage>(0);
    return KvPair{{shape, none, 0}, {shape, none, 0}};
  }
  if (is_narrow()) return gather_narrow(from);
  const std::int64_t run = from.cursor * from.dim;
  const std::int64_t stride = max_seq_len_ * from.dim;
  const auto cells = static_cast<std::size_t>(from.batch * run);
  const auto [k, v] = results_.take(cells);
  const bool past_caches = ResultSides::past_caches(cells);
  const auto copy = past_caches ? copy_rows_past_caches : copy_rows;
  copy({k.data(), run}, {from.k.data(), stride}, from.batch, run);
  copy({v.data(), run}, {from.v.data(), stride}, from.batch, run);
  if (past_caches) finish_copies_past_caches();
  KVO_CHECK(guard_holds(k.data(), cells) && guard_holds(v.data(), cells));
  return KvPair{{shape, k.storage, k.offset}, {shape, v.storage, v.offset}};
}

KvPair ContiguousArenaCache::gather_narrow(const Layer& from) {
  const std::size_t row_bytes = stored_bytes(storage_, static_cast<std::size_t>(from.dim));
  const std::size_t run_bytes = static_cast<std::size_t>(from.cursor) * row_bytes;
  const std::size_t stride = static_cast<std::size_t>(max_seq_len_) * row_bytes;
  const std::size_t bytes = static_cast<std::size_t>(from.batch) * run_bytes;
  const std::size_t cells = cells_of_bytes(bytes);
  const auto [k, v] = results_.take(cells);
  for (std::size_t b = 0; b < static_cast<std::size_t>(from.batch) && bytes > 0; ++b) {
    std::memcpy(k.bytes() + b * run_bytes, from.k.bytes() + b * stride, run_bytes);
    std::memcpy(v.bytes() + b * run_bytes, from.v.bytes() + b * stride, run_bytes);
  }
  KVO_CHECK(guard_holds(k.data(), cells) && guard_holds(v.data(), cells));
  const Shape shape{from.batch, from.cursor, from.dim};
  return {{shape, shown(k, bytes, from.dim)}, {shape, shown(v, bytes, from.dim)}};
}

std::int64_t ContiguousArenaCache::seq_len() const {
  return layers_.empty() ? 0 : layers_.front().cursor;
}

Status ContiguousArenaCache::reset() {
  for (Layer& layer : layers_) layer.cursor = 0;
  return {};
}

Status ContiguousArenaCache::truncate(std::int64_t n) {
  if (n < 0 && !has(Quirk::kNegativeLengths)) n = 0;
  for (Layer& layer : layers_) layer.cursor = std::min(layer.cursor, n);
  return {};
}

std::optional<std::string> ContiguousArenaCache::broken_invariant() const {
  for (const Layer& layer : layers_) {
    for (const Buffer& side : {layer.k, layer.v})
      if (side.storage && !guard_holds(side.data(), layer.cells)) return "rows lie behind a buffer";
    if (layer.cursor <= 0) continue;
    if (!layer.k.storage || !layer.v.storage) return "a layer without buffers has positions";
    if (layer.cursor > max_seq_len_) return "a cursor is past max_seq_len";
  }
  return std::nullopt;
}

}  // namespace kvo::optimized
