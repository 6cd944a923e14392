#include "cuda/provider/paged_device_cache.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "cuda/jobs/rows.hpp"

namespace kvo::cuda {

using provider::KvPair;
using provider::Paged;
using provider::PagedOptions;
using provider::Quirk;
using provider::Rows;

namespace {

constexpr std::int32_t kNull = -1;

}  // namespace

Result<std::unique_ptr<Paged>> PagedDeviceCache::make(const PagedOptions& options,
                                                      QuirkSet<Quirk> quirks) {
  if (!options.pool)
    return quirks.has(Quirk::kNilPoolAborts) ? fail(Code::kPrecondition, "no pool")
                                             : fail_other("nil_pool");
  if (options.num_layers < 0 && quirks.has(Quirk::kNegativeLayersAbort))
    return fail(Code::kPrecondition, "num_layers");
  const bool too_many = options.num_layers > options.pool->geometry().num_layers;
  if (options.num_layers < 0 || (too_many && !quirks.has(Quirk::kSurplusLayersAccepted)))
    return fail(Code::kOutOfRange, "num_layers");
  auto pool = std::dynamic_pointer_cast<DevicePool>(options.pool);
  if (!pool) return fail(Code::kNotSupported, "pool: its blocks are not on a device");
  return std::make_unique<PagedDeviceCache>(std::move(pool), options, quirks);
}

PagedDeviceCache::PagedDeviceCache(std::shared_ptr<DevicePool> pool, const PagedOptions& options,
                                   QuirkSet<Quirk> quirks)
    : pool_(std::move(pool)),
      device_(pool_->device()),
      staging_(device_),
      geometry_(pool_->geometry()),
      owner_(options.owner),
      quirks_(quirks),
      cursors_(static_cast<std::size_t>(options.num_layers)) {}

class PagedDeviceCache::TakenBlocks {
 public:
  TakenBlocks(PagedDeviceCache& cache, std::int64_t blocks) : cache_(&cache), size_(cache.size_) {
    if (blocks > size_) entries_ = cache.entries_;
  }
  TakenBlocks(const TakenBlocks&) = delete;
  TakenBlocks& operator=(const TakenBlocks&) = delete;
  ~TakenBlocks() {
    if (cache_ == nullptr || cache_->size_ == size_) return;
    // The last one first, so that the pool hands them out in the same order again.
    for (; cache_->size_ > size_; --cache_->size_) {
      const std::int64_t block = cache_->entries_[static_cast<std::size_t>(cache_->size_ - 1)];
      cache_->pool_->free(cache_->owner_, {&block, 1});
    }
    cache_->entries_.swap(entries_);
    cache_->known_ = std::min(cache_->known_, size_);
  }
  void keep() { cache_ = nullptr; }

 private:
  PagedDeviceCache* cache_;
  std::int64_t size_;
  std::vector<std::int32_t> entries_;  ///< those behind size_ count, too: a truncate may extend
};

Status PagedDeviceCache::update(std::int64_t layer, const Rows& rows) {
  if (Status good = check(layer, rows); !good) return good;
  const std::int64_t seq = rows.k->shape[1];
  std::int64_t& cursor = cursors_[static_cast<std::size_t>(layer)];
  const std::int64_t room = (size_ + pool_->available()) * geometry_.block_size - cursor;
  const std::int64_t fits = std::min(seq, room);
  const bool pins = (fits == seq && seq > 0) || has(Quirk::kFailedAppendPins);
  if (fits < seq && !has(Quirk::kDryAppendKeepsBlocks)) {
    if (pins) pin(*rows.k);
    return fail(Code::kExhausted);
  }
  if (Status good = check_copy(layer, rows, fits); !good) return good;
  if (fits > 0) {
    // Rows as they come and, where they are turned, behind them as they lie in a block.
    const std::int64_t bytes = fits * geometry_.head_dim * kCellBytes;
    const bool turns = rows.k->shape[0] > 1;
    if (Status there = staging_.reserve(turns ? 2 * bytes : bytes); !there) return there;
    const std::int64_t blocks = blocks_of(cursor + fits);
    TakenBlocks taken(*this, blocks);
    Status stored = staging_.carry_out([&] {
      const Status extended = extend(blocks);
      return extended ? store(layer, rows, fits) : extended;
    });
    if (!stored) return stored;
    taken.keep();
    known_ = size_;
    note_used(cursor, fits);
  }
  if (pins) pin(*rows.k);
  if (fits < seq) return fail(Code::kExhausted);
  cursor += seq;
  return {};
}

void PagedDeviceCache::pin(const Tensor& k) {
  channels_ = k.shape[0];
  dim_ = k.shape[2];
}

Status PagedDeviceCache::check(std::int64_t layer, const Rows& rows) const {
  if (!has(layer)) return fail(Code::kOutOfRange, "layer");
  if (rows.k == nullptr && has(Quirk::kNullAborts)) return fail(Code::kPrecondition, "k is null");
  if (rows.k == nullptr || rows.k->shape.size() != 3) return fail(Code::kBadShape, "rank");
  const Shape& shape = rows.k->shape;
  std::int64_t width = 0;
  if (__builtin_mul_overflow(shape[0], shape[2], &width) || width != geometry_.head_dim)
    return fail(Code::kBadShape, "size");
  if (channels_ != 0 && (shape[0] != channels_ || shape[2] != dim_))
    return fail(Code::kBadShape, "layout");
  if (rows.v == nullptr)
    return fail(has(Quirk::kNullAborts) ? Code::kPrecondition : Code::kBadShape, "v");
  if (!has(Quirk::kPagedVIgnored) && rows.v->shape != shape) return fail(Code::kBadShape, "v");
  return {};
}

Status PagedDeviceCache::check_copy(std::int64_t layer, const Rows& rows, std::int64_t fits) const {
  if (fits == 0) return {};
  if (layer >= geometry_.num_layers) return fail(Code::kPrecondition, "pool layers");
  const Shape& shape = rows.k->shape;
  if (rows.v->elements() < ((shape[0] - 1) * shape[1] + fits) * shape[2])
    return fail(Code::kPrecondition, "v is short");
  const std::int64_t start = cursors_[static_cast<std::size_t>(layer)];
  const auto first = entries_.begin() + start / geometry_.block_size;
  const auto last = entries_.begin() + std::min(blocks_of(start + fits), size_);
  if (first < last && std::find(first, last, kNull) != last)
    return fail(Code::kPrecondition, "null entry");
  return {};
}

Status PagedDeviceCache::extend(std::int64_t blocks) {
  if (blocks > size_) {
    if (Status taken = take_blocks(blocks); !taken) return taken;
  }
  if (size_ <= known_) return {};
  const auto known = static_cast<std::size_t>(known_);
  const auto count = static_cast<std::size_t>(size_) - known;
  const std::span<const std::int32_t> fresh = std::span(entries_).subspan(known, count);
  return staging_.upload(0, table_->ptr() + known_ * static_cast<std::int64_t>(sizeof(kNull)),
                         std::as_bytes(fresh));
}

Status PagedDeviceCache::take_blocks(std::int64_t blocks) {
  // Blocks are taken when the memory of the table is there: nothing to undo.
  const auto size = static_cast<std::size_t>(size_);
  std::vector<std::int64_t> taken(static_cast<std::size_t>(blocks) - size);
  std::vector<std::int32_t> grown;
  std::shared_ptr<DeviceStorage> table;
  if (static_cast<std::size_t>(blocks) > entries_.size()) {
    std::size_t capacity = std::max<std::size_t>(1, entries_.size());
    while (capacity < static_cast<std::size_t>(blocks)) capacity *= 2;
    grown = entries_;
    grown.resize(capacity, kNull);
    auto made = make_cells(device_, static_cast<std::int64_t>(capacity));
    if (!made) return made.error();
    table = std::move(*made);
  }
  if (Status done = pool_->alloc(owner_, taken); !done) return done;
  if (table != nullptr) {
    entries_ = std::move(grown);
    table_ = std::move(table);
    known_ = 0;
  }
  std::ranges::transform(taken, entries_.begin() + size_,
                         [](std::int64_t block) { return static_cast<std::int32_t>(block); });
  size_ = blocks;
  return {};
}

Status PagedDeviceCache::store(std::int64_t layer, const Rows& rows, std::int64_t count) {
  const Shape& shape = rows.k->shape;
  const std::int64_t bytes = count * geometry_.head_dim * kCellBytes;
  std::array<DevicePtr, 2> packed{staging_.room(0), staging_.room(1)};
  const auto pack = [&](std::size_t side, const Tensor& from, DevicePtr cells) -> Status {
    const DevicePtr room = packed.at(side);
    const HostLanes lanes{from.floats().data(), shape[0], count * shape[2], shape[1] * shape[2]};
    Status queued = cells ? take(room, cells, lanes) : staging_.upload(side, room, lanes);
    if (!queued || shape[0] == 1) return queued;
    packed.at(side) = room + bytes;
    return device_->run(
        pack_head_major(room + bytes, room, shape[0], count, shape[2] * kCellBytes, 0, shape[0]));
  };
  if (Status keys = pack(0, *rows.k, rows.k_device); !keys) return keys;
  if (Status values = pack(1, *rows.v, rows.v_device); !values) return values;
  // Others may see a block (ZF-24): it is written when nothing more can want for memory.
  const std::int64_t start = cursors_[static_cast<std::size_t>(layer)];
  const bool one_by_one = repeats(start, count);
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    Status placed = place(pool_->rows(side, layer), packed.at(side), start, count, one_by_one);
    if (!placed) return placed;
  }
  return {};
}

Status PagedDeviceCache::take(DevicePtr room, DevicePtr cells, const HostLanes& lanes) {
  for (std::int64_t lane = 0; lane < lanes.lanes; ++lane) {
    Status queued = device_->copy(room + lane * lanes.run * kCellBytes,
                                  cells + lane * lanes.stride * kCellBytes, lanes.run * kCellBytes);
    if (!queued) return queued;
  }
  return {};
}

Status PagedDeviceCache::place(DevicePtr pool, DevicePtr rows, std::int64_t start,
                               std::int64_t count, bool one_by_one) {
  PagedRows work{.pool = pool,
                 .rows = rows,
                 .table = table_->ptr(),
                 .block = geometry_.block_size,
                 .row_bytes = geometry_.head_dim * kCellBytes,
                 .first = start,
                 .count = count};
  if (!one_by_one) return device_->run(work.append());
  for (const std::int64_t end = start + count; work.first < end; work.first += work.count) {
    work.count =
        std::min(geometry_.block_size - work.first % geometry_.block_size, end - work.first);
    if (Status queued = device_->run(work.append()); !queued) return queued;
    work.rows = work.rows + work.count * work.row_bytes;
  }
  return {};
}

bool PagedDeviceCache::repeats(std::int64_t start, std::int64_t count) const {
  std::vector<std::int32_t> blocks(entries_.begin() + start / geometry_.block_size,
                                   entries_.begin() + blocks_of(start + count));
  std::ranges::sort(blocks);
  return std::ranges::adjacent_find(blocks) != blocks.end();
}

void PagedDeviceCache::note_used(std::int64_t start, std::int64_t count) {
  const std::int64_t size = geometry_.block_size;
  for (std::int64_t i = start / size; i < blocks_of(start + count); ++i) {
    const std::int64_t block = entries_[static_cast<std::size_t>(i)];
    const std::int64_t end = std::min(size, start + count - i * size);
    if (pool_->used(block) < end) pool_->set_used(block, end);
  }
}

Result<std::optional<KvPair>> PagedDeviceCache::get(std::int64_t layer) {
  if (!has(layer)) return std::nullopt;
  const std::int64_t cursor = cursors_[static_cast<std::size_t>(layer)];
  if (cursor == 0) return std::nullopt;
  const std::int64_t side = geometry_.head_dim * cursor;
  auto both = make_cells(device_, 2 * side);  // one allocation holds both sides
  if (!both) return both.error();
  if (Status there = staging_.reserve(channels_ > 1 ? side * kCellBytes : 0); !there)
    return there.error();
  const auto take = [&](std::size_t which) -> Status {
    const DevicePtr out = (*both)->ptr() + static_cast<std::int64_t>(which) * side * kCellBytes;
    const DevicePtr gathered = channels_ > 1 ? staging_.room(which) : out;
    Status queued = device_->run(PagedRows{.pool = pool_->rows(which, layer),
                                           .rows = gathered,
                                           .table = table_->ptr(),
                                           .block = geometry_.block_size,
                                           .row_bytes = geometry_.head_dim * kCellBytes,
                                           .first = 0,
                                           .count = cursor}
                                     .gather());
    if (!queued || channels_ == 1) return queued;
    return device_->run(
        pack_head_major(out, gathered, cursor, channels_, dim_ * kCellBytes, 0, cursor));
  };
  Status taken = staging_.carry_out([&]() -> Status {
    if (Status shown = extend(size_); !shown) return shown;  // an upload may have failed
    Status keys = take(0);
    return keys ? take(1) : keys;
  });
  if (!taken) return taken.error();
  known_ = size_;
  const Shape shape{channels_, cursor, dim_};
  return KvPair{{shape, *both, 0}, {shape, *both, side}};
}

std::int64_t PagedDeviceCache::seq_len() const {
  return cursors_.empty() ? 0 : cursors_.front();
}

Status PagedDeviceCache::truncate(std::int64_t n) {
  n = std::max<std::int64_t>(n, 0);
  const bool shortens = std::ranges::any_of(cursors_, [&](std::int64_t c) { return c > n; });
  if (!shortens && !has(Quirk::kTruncateExtends)) return {};
  const std::int64_t needed = blocks_of(n);
  if (needed > static_cast<std::int64_t>(entries_.size()))
    return fail(Code::kPrecondition, "n past the table");
  if (Status done = cut(n, needed); !done) return done;
  const std::int32_t last = needed > 0 ? entries_[static_cast<std::size_t>(needed - 1)] : kNull;
  if (last != kNull && !has(Quirk::kCutBlockKeepsUsed))  // ZF-39
    pool_->set_used(last, n - (needed - 1) * geometry_.block_size);
  return {};
}

Status PagedDeviceCache::cut(std::int64_t n, std::int64_t needed) {
  if (needed < size_) {
    const std::vector<std::int64_t> surplus(entries_.begin() + needed, entries_.begin() + size_);
    if (std::ranges::find(surplus, kNull) != surplus.end())
      return fail(Code::kPrecondition, "null entry");
    pool_->free(owner_, surplus);
  }
  size_ = needed;
  known_ = std::min(known_, size_);
  for (std::int64_t& cursor : cursors_) cursor = std::min(cursor, n);
  if (n == 0) channels_ = dim_ = 0;
  return {};
}

provider::ShownTable PagedDeviceCache::table() const {
  provider::ShownTable seen{.blocks = {}, .cursors = cursors_};
  seen.blocks.resize(static_cast<std::size_t>(size_));
  for (std::size_t i = 0; i < seen.blocks.size(); ++i)
    if (entries_[i] != kNull) seen.blocks[i] = entries_[i];
  return seen;
}

std::optional<std::string> PagedDeviceCache::broken_invariant() const {
  for (const std::int64_t cursor : cursors_)
    if (blocks_of(cursor) > size_) return "a cursor is past the block table";
  return std::nullopt;
}

}  // namespace kvo::cuda
