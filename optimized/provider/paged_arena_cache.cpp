#include "optimized/provider/paged_arena_cache.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include <boost/container/small_vector.hpp>

#include "optimized/memory/convert.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/contract/values/stored_rows.hpp"

namespace kvo::optimized {

using block_pool::Sides;
using provider::KvPair;
using provider::Paged;
using provider::PagedOptions;
using provider::Quirk;
using provider::Rows;

namespace {

constexpr std::int64_t kNull = -1;

struct FloatSides {
  std::span<float> k;
  std::span<float> v;
};

/// The cells of a block whose rows are f32.
FloatSides floats_of(const Sides& sides) {
  const auto floats = [](std::span<std::byte> side) {
    return std::span(reinterpret_cast<float*>(side.data()), side.size() / sizeof(float));
  };
  return {floats(sides.k), floats(sides.v)};
}

}  // namespace

Result<std::unique_ptr<Paged>> PagedArenaCache::make(const PagedOptions& options,
                                                     QuirkSet<Quirk> quirks) {
  if (!options.pool)
    return quirks.has(Quirk::kNilPoolAborts) ? fail(Code::kPrecondition, "no pool")
                                             : fail_other("nil_pool");
  if (options.num_layers < 0 && quirks.has(Quirk::kNegativeLayersAbort))
    return fail(Code::kPrecondition, "num_layers");
  const bool too_many = options.num_layers > options.pool->geometry().num_layers;
  if (options.num_layers < 0 || (too_many && !quirks.has(Quirk::kSurplusLayersAccepted)))
    return fail(Code::kOutOfRange, "num_layers");
  return std::make_unique<PagedArenaCache>(options, quirks);
}

PagedArenaCache::PagedArenaCache(const PagedOptions& options, QuirkSet<Quirk> quirks)
    : pool_(options.pool),
      owner_(options.owner),
      quirks_(quirks),
      pool_layers_(options.pool->geometry().num_layers),
      block_size_(options.pool->geometry().block_size),
      head_dim_(options.pool->geometry().head_dim),
      storage_(options.pool->geometry().storage),
      cursors_(static_cast<std::size_t>(options.num_layers)) {}

template <class Visit>
void PagedArenaCache::for_each_run(std::int64_t start, std::int64_t count, Visit&& visit) const {
  auto entry = static_cast<std::size_t>(start / block_size_);
  std::int64_t slot = start % block_size_;
  for (std::int64_t p = 0; p < count; ++entry, slot = 0) {
    const std::int64_t run = std::min(block_size_ - slot, count - p);
    visit(Run{p, slot, run, entries_[entry]});
    p += run;
  }
}

Status PagedArenaCache::update(std::int64_t layer, const Rows& rows) {
  if (Status good = check(layer, rows); !good) return good;
  const std::int64_t seq = rows.k->shape[1];
  std::int64_t& cursor = cursors_[static_cast<std::size_t>(layer)];
  std::int64_t fits = seq;
  // The pool's lock is only taken when a block is missing.
  if (blocks_of(cursor + seq) > size_)
    fits = std::min(seq, (size_ + pool_->available()) * block_size_ - cursor);
  const bool pins = (fits == seq && seq > 0) || has(Quirk::kFailedAppendPins);
  if (fits < seq && !has(Quirk::kDryAppendKeepsBlocks)) {
    if (pins) pin(*rows.k);
    return fail(Code::kExhausted);
  }
  if (Status good = check_copy(layer, rows, fits); !good) return good;
  if (Status taken = extend(blocks_of(cursor + fits)); !taken) return taken;
  if (pins) pin(*rows.k);
  store(layer, rows, fits);
  if (fits < seq) return fail(Code::kExhausted);
  cursor += seq;
  return {};
}

void PagedArenaCache::pin(const Tensor& k) {
  channels_ = k.shape[0];
  dim_ = k.shape[2];
}

Status PagedArenaCache::check(std::int64_t layer, const Rows& rows) const {
  if (!has(layer)) return fail(Code::kOutOfRange, "layer");
  if (rows.k == nullptr && has(Quirk::kNullAborts)) return fail(Code::kPrecondition, "k is null");
  if (rows.k == nullptr || rows.k->shape.size() != 3) return fail(Code::kBadShape, "rank");
  const Shape& shape = rows.k->shape;
  std::int64_t width = 0;
  if (__builtin_mul_overflow(shape[0], shape[2], &width) || width != head_dim_)
    return fail(Code::kBadShape, "size");
  if (in_groups(storage_.type) && shape[0] > 1 && shape[2] % storage_.group != 0)
    return fail(Code::kBadShape, "dim: " + std::to_string(shape[2]) + " is no multiple of group");
  if (channels_ != 0 && (shape[0] != channels_ || shape[2] != dim_))
    return fail(Code::kBadShape, "layout");
  if (rows.v == nullptr)
    return fail(has(Quirk::kNullAborts) ? Code::kPrecondition : Code::kBadShape, "v");
  if (!has(Quirk::kPagedVIgnored) && rows.v->shape != shape) return fail(Code::kBadShape, "v");
  return {};
}

Status PagedArenaCache::check_copy(std::int64_t layer, const Rows& rows, std::int64_t fits) const {
  if (fits == 0) return {};
  if (layer >= pool_layers_) return fail(Code::kPrecondition, "pool layers");
  const Shape& shape = rows.k->shape;
  if (rows.v->elements() < ((shape[0] - 1) * shape[1] + fits) * shape[2])
    return fail(Code::kPrecondition, "v is short");
  const std::int64_t start = cursors_[static_cast<std::size_t>(layer)];
  const auto first = entries_.begin() + start / block_size_;
  const auto last = entries_.begin() + std::min(blocks_of(start + fits), size_);
  if (first < last && std::find(first, last, kNull) != last)
    return fail(Code::kPrecondition, "null entry");
  return {};
}

Status PagedArenaCache::extend(std::int64_t blocks) {
  if (blocks <= size_) return {};
  // Blocks are taken before the table changes and after its memory is there: nothing to undo.
  const auto size = static_cast<std::size_t>(size_);
  boost::container::small_vector<std::int64_t, 16> taken(static_cast<std::size_t>(blocks) - size);
  std::vector<std::int64_t> grown;
  if (size + taken.size() > entries_.size()) {
    std::size_t capacity = std::max<std::size_t>(1, entries_.size());
    while (capacity < size + taken.size()) capacity *= 2;
    grown.reserve(capacity);
    grown.assign(entries_.begin(), entries_.end());
    grown.resize(capacity, kNull);
  }
  if (Status done = pool_->alloc(owner_, {taken.data(), taken.size()}); !done) return done;
  if (!grown.empty()) entries_ = std::move(grown);
  std::ranges::copy(taken, entries_.begin() + size_);
  size_ = blocks;
  return {};
}

void PagedArenaCache::store(std::int64_t layer, const Rows& rows, std::int64_t count) {
  const std::int64_t channels = rows.k->shape[0];
  const std::int64_t seq = rows.k->shape[1];
  const std::int64_t dim = rows.k->shape[2];
  if (count == 0) return;
  if (storage_.type != StorageType::kF32) return store_narrow(layer, rows, count);
  const float* k = rows.k->floats().data();
  const float* v = rows.v->floats().data();
  const auto put = [&](float* to, const float* from, std::int64_t positions) {
    // A block is written from front to back; with one channel all its positions are one run of
    // cells.
    if (channels == 1) return copy_rows({to, dim}, {from, dim}, positions, dim);
    for (std::int64_t p = 0; p < positions; ++p)
      copy_rows({to + p * head_dim_, dim}, {from + p * dim, seq * dim}, channels, dim);
  };
  for_each_run(cursors_[static_cast<std::size_t>(layer)], count, [&](const Run& run) {
    const FloatSides sides = floats_of(pool_->sides(run.block));
    const std::int64_t to = (layer * block_size_ + run.slot) * head_dim_;
    will_write(sides.v.data() + to, head_dim_);
    put(sides.k.data() + to, k + run.position * dim, run.count);
    put(sides.v.data() + to, v + run.position * dim, run.count);
    note_used(run);
    // Most likely the next layer's row of this token comes now, or the next token of the first one.
    const bool is_last = layer + 1 == pool_layers_;
    const std::int64_t next =
        is_last ? (run.slot + 1) % block_size_ * head_dim_ : to + block_size_ * head_dim_;
    will_write(sides.k.data() + next, head_dim_);
    will_write(sides.v.data() + next, head_dim_);
  });
}

void PagedArenaCache::note_used(const Run& run) const {
  const std::int64_t end = run.slot + run.count;
  if (pool_->used(run.block) < end) pool_->set_used(run.block, end);
}

void PagedArenaCache::store_narrow(std::int64_t layer, const Rows& rows, std::int64_t count) {
  const std::int64_t channels = rows.k->shape[0];
  const std::int64_t seq = rows.k->shape[1];
  const std::int64_t dim = rows.k->shape[2];
  const auto row_bytes =
      static_cast<std::int64_t>(stored_bytes(storage_, static_cast<std::size_t>(dim)));
  const auto position_bytes =
      static_cast<std::int64_t>(stored_bytes(storage_, static_cast<std::size_t>(head_dim_)));
  const auto encode_run = [&](std::byte* to, const float* from, std::int64_t positions) {
    const auto width = static_cast<std::size_t>(dim);
    const std::size_t cells = static_cast<std::size_t>(positions) * width;
    if (channels == 1) return encode_rows(storage_, width, {from, cells}, to);
    for (std::int64_t p = 0; p < positions; ++p)
      for (std::int64_t c = 0; c < channels; ++c)
        encode_rows(storage_, width, {from + (c * seq + p) * dim, width},
                    to + p * position_bytes + c * row_bytes);
  };
  for_each_run(cursors_[static_cast<std::size_t>(layer)], count, [&](const Run& run) {
    const Sides stored = pool_->sides(run.block);
    const std::int64_t to = (layer * block_size_ + run.slot) * position_bytes;
    const std::int64_t from = run.position * dim;
    encode_run(stored.k.data() + to, rows.k->floats().data() + from, run.count);
    encode_run(stored.v.data() + to, rows.v->floats().data() + from, run.count);
    note_used(run);
  });
}

Result<std::optional<KvPair>> PagedArenaCache::get(std::int64_t layer) {
  if (!has(layer)) return std::nullopt;
  const std::int64_t cursor = cursors_[static_cast<std::size_t>(layer)];
  if (cursor == 0) return std::nullopt;
  if (storage_.type != StorageType::kF32) return gather_narrow(layer, cursor);
  // Nothing clears them: every cell is written below.
  const std::int64_t side = head_dim_ * cursor;
  const std::array<Buffer, 2> both = results_.take(static_cast<std::size_t>(side));
  const Buffer& k = both[0];
  const Buffer& v = both[1];
  const bool past_caches = ResultSides::past_caches(static_cast<std::size_t>(side));
  const auto copy = past_caches ? copy_rows_past_caches : copy_rows;
  const auto take = [&](float* to, const float* from, std::int64_t positions) {
    if (channels_ == 1) return copy({to, dim_}, {from, dim_}, positions, dim_);
    // By channel: what is written lies together, what is read is a block, which the caches hold.
    for (std::int64_t c = 0; c < channels_; ++c)
      copy({to + c * cursor * dim_, dim_}, {from + c * dim_, head_dim_}, positions, dim_);
  };
  for_each_run(0, cursor, [&](const Run& run) {
    const FloatSides sides = floats_of(pool_->sides(run.block));
    const std::int64_t from = (layer * block_size_ + run.slot) * head_dim_;
    const std::int64_t to = run.position * dim_;
    take(k.data() + to, sides.k.data() + from, run.count);
    take(v.data() + to, sides.v.data() + from, run.count);
  });
  if (past_caches) finish_copies_past_caches();
  const Shape shape{channels_, cursor, dim_};
  KVO_CHECK(guard_holds(k.data(), static_cast<std::size_t>(side)) &&
            guard_holds(v.data(), static_cast<std::size_t>(side)));
  return KvPair{{shape, k.storage, k.offset}, {shape, v.storage, v.offset}};
}

KvPair PagedArenaCache::gather_narrow(std::int64_t layer, std::int64_t cursor) {
  const std::size_t row_bytes = stored_bytes(storage_, static_cast<std::size_t>(dim_));
  const std::size_t position_bytes = stored_bytes(storage_, static_cast<std::size_t>(head_dim_));
  const auto channels = static_cast<std::size_t>(channels_);
  const auto length = static_cast<std::size_t>(cursor);
  const std::size_t bytes = channels * length * row_bytes;
  const std::size_t cells = cells_of_bytes(bytes);
  const auto [k, v] = results_.take(cells);
  const auto copy_run = [&](std::byte* to, const std::byte* stored, std::size_t positions) {
    if (channels == 1) {
      std::memcpy(to, stored, positions * row_bytes);
      return;
    }
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t p = 0; p < positions; ++p)
        std::memcpy(to + (c * length + p) * row_bytes, stored + p * position_bytes + c * row_bytes,
                    row_bytes);
  };
  for_each_run(0, cursor, [&, &k = k, &v = v](const Run& run) {
    const Sides stored = pool_->sides(run.block);
    const std::size_t first =
        static_cast<std::size_t>(layer * block_size_ + run.slot) * position_bytes;
    const std::size_t to = static_cast<std::size_t>(run.position) * row_bytes;
    const auto positions = static_cast<std::size_t>(run.count);
    copy_run(k.bytes() + to, stored.k.data() + first, positions);
    copy_run(v.bytes() + to, stored.v.data() + first, positions);
  });
  KVO_CHECK(guard_holds(k.data(), cells) && guard_holds(v.data(), cells));
  const auto shown = [&](const Buffer& side) {
    return std::make_shared<StoredRows>(storage_, dim_, std::span(side.bytes(), bytes),
                                        side.storage);
  };
  const Shape shape{channels_, cursor, dim_};
  return {{shape, shown(k)}, {shape, shown(v)}};
}

std::int64_t PagedArenaCache::seq_len() const {
  return cursors_.empty() ? 0 : cursors_.front();
}

Status PagedArenaCache::truncate(std::int64_t n) {
  n = std::max<std::int64_t>(n, 0);
  const bool shortens = std::ranges::any_of(cursors_, [&](std::int64_t c) { return c > n; });
  if (!shortens && !has(Quirk::kTruncateExtends)) return {};
  const std::int64_t needed = blocks_of(n);
  if (needed > static_cast<std::int64_t>(entries_.size()))
    return fail(Code::kPrecondition, "n past the table");
  if (Status done = cut(n, needed); !done) return done;
  if (needed > 0 && !has(Quirk::kCutBlockKeepsUsed)) {  // ZF-39
    const std::int64_t last = entries_[static_cast<std::size_t>(needed - 1)];
    pool_->set_used(last, n - (needed - 1) * block_size_);
  }
  return {};
}

Status PagedArenaCache::cut(std::int64_t n, std::int64_t needed) {
  if (needed < size_) {
    const auto surplus = std::span<const std::int64_t>(entries_).subspan(
        static_cast<std::size_t>(needed), static_cast<std::size_t>(size_ - needed));
    if (std::ranges::find(surplus, kNull) != surplus.end())
      return fail(Code::kPrecondition, "null entry");
    pool_->free(owner_, surplus);
  }
  size_ = needed;
  for (std::int64_t& cursor : cursors_) cursor = std::min(cursor, n);
  if (n == 0) channels_ = dim_ = 0;
  return {};
}

provider::ShownTable PagedArenaCache::table() const {
  provider::ShownTable seen{.blocks = {}, .cursors = cursors_};
  seen.blocks.reserve(static_cast<std::size_t>(size_));
  for (const auto entry : std::span(entries_).first(static_cast<std::size_t>(size_)))
    seen.blocks.push_back(entry == kNull ? std::nullopt : std::optional<std::int64_t>(entry));
  return seen;
}

std::optional<std::string> PagedArenaCache::broken_invariant() const {
  for (const std::int64_t cursor : cursors_)
    if (blocks_of(cursor) > size_) return "a cursor is past the block table";
  return std::nullopt;
}

}  // namespace kvo::optimized
