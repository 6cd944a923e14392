// reference/provider/paged_cache.hpp: the reference of `provider.paged`.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "reference/contract/values/stored_rows.hpp"
#include "reference/provider/paged.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract: it copies position by position, channel by channel.
class PagedCache : public Paged {
 public:
  /// Errors  as MakePaged says.
  static Result<std::unique_ptr<Paged>> make(const PagedOptions& options, QuirkSet<Quirk> quirks) {
    if (Status good = check(options, quirks); !good) return good.error();
    return std::make_unique<PagedCache>(options, quirks);
  }

  PagedCache(const PagedOptions& options, QuirkSet<Quirk> quirks)
      : pool_(options.pool),
        geometry_(options.pool->geometry()),
        owner_(options.owner),
        quirks_(quirks),
        cursors_(static_cast<std::size_t>(options.num_layers)) {}

  [[nodiscard]] std::int64_t num_layers() const override {
    return static_cast<std::int64_t>(cursors_.size());
  }
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    if (Status good = check_layout(layer, rows); !good) return good;
    if (Status good = check_v(rows, quirks_, Quirk::kPagedVIgnored); !good) return good;
    const std::int64_t seq = rows.k->shape[1];
    std::int64_t& cursor = cursors_[static_cast<std::size_t>(layer)];
    // The pool runs dry behind this many positions (ZF-30).
    const std::int64_t room = (table_.size + pool_->available()) * geometry_.block_size - cursor;
    const std::int64_t fits = std::min(seq, room);
    const bool pins = (fits == seq && seq > 0) || quirks_.has(Quirk::kFailedAppendPins);  // ZF-31
    if (fits < seq && !quirks_.has(Quirk::kDryAppendKeepsBlocks)) {
      if (pins) pin(*rows.k);
      return fail(Code::kExhausted);
    }
    if (Status good = check_copy(layer, rows, fits); !good) return good;
    if (Status taken = extend(cursor + fits); !taken) return taken;
    if (pins) pin(*rows.k);
    for (std::int64_t p = 0; p < fits; ++p) copy_position(layer, rows, p);
    if (fits < seq) return fail(Code::kExhausted);
    cursor += seq;
    return {};
  }
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override {
    if (!has(layer)) return std::nullopt;
    const std::int64_t cursor = cursors_[static_cast<std::size_t>(layer)];
    if (cursor == 0) return std::nullopt;
    const auto gather = [&](Side side) {
      const auto cells = static_cast<std::size_t>(channels_ * cursor * dim_);
      auto rows = std::make_shared<StoredRows>(geometry_.storage, dim_, cells);
      for (std::int64_t p = 0; p < cursor; ++p) {
        const std::int64_t block = *table_[p / geometry_.block_size];
        const std::int64_t slot = p % geometry_.block_size;
        const std::int64_t from = (layer * geometry_.block_size + slot) * geometry_.head_dim;
        for (std::int64_t c = 0; c < channels_; ++c)
          std::ranges::copy(pool_->stored(block, side, from + c * dim_, dim_),
                            rows->rows(c * cursor + p, 1).begin());
      }
      return rows;
    };
    const Shape shape{channels_, cursor, dim_};
    return KvPair{{shape, gather(Side::kK)}, {shape, gather(Side::kV)}};
  }
  [[nodiscard]] std::int64_t seq_len() const override {
    return cursors_.empty() ? 0 : cursors_.front();
  }
  [[nodiscard]] Status reset() override { return free(); }
  [[nodiscard]] Status truncate(std::int64_t n) override {
    n = std::max<std::int64_t>(n, 0);
    const std::int64_t longest = cursors_.empty() ? 0 : *std::ranges::max_element(cursors_);
    if (!quirks_.has(Quirk::kTruncateExtends) && n >= longest) return {};
    const std::int64_t needed = blocks_of(n);
    if (needed > table_.capacity()) return fail(Code::kPrecondition, "n is beyond the table");
    if (Status done = cut(n, needed); !done) return done;
    // An entry that was taken back may be null, if the one quirk is on and the other off.
    if (!quirks_.has(Quirk::kCutBlockKeepsUsed) && needed > 0 && table_[needed - 1].has_value())
      pool_->set_used(*table_[needed - 1], n - (needed - 1) * geometry_.block_size);
    return {};
  }
  [[nodiscard]] Status free() override { return cut(0, 0); }
  [[nodiscard]] provider::ShownTable table() const override {
    return {{table_.entries.begin(), table_.entries.begin() + table_.size}, cursors_};
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    for (const std::int64_t cursor : cursors_)
      if (blocks_of(cursor) > table_.size) return "a cursor is past the block table";
    return std::nullopt;
  }

 private:
  using Side = block_pool::Side;

  /// A list that grows as in ZF-5: cutting it keeps capacity and the cut entries.
  struct BlockTable {
    std::vector<Nullable<std::int64_t>> entries = {};  ///< as many as the capacity
    std::int64_t size = 0;
    [[nodiscard]] std::int64_t capacity() const {
      return static_cast<std::int64_t>(entries.size());
    }
    [[nodiscard]] Nullable<std::int64_t>& operator[](std::int64_t i) {
      return entries[static_cast<std::size_t>(i)];
    }
    void reserve(std::int64_t needed) {
      std::int64_t grown = capacity();
      while (grown < needed) grown = std::max<std::int64_t>(1, 2 * grown);
      entries.resize(static_cast<std::size_t>(grown));
    }
  };

  [[nodiscard]] Status check_layout(std::int64_t layer, const Rows& rows) const {
    if (!has(layer)) return fail(Code::kOutOfRange, "layer");
    if (Status good = check_k(rows, quirks_); !good) return good;
    const std::int64_t channels = rows.k->shape[0];
    const std::int64_t dim = rows.k->shape[2];
    std::int64_t width = 0;
    if (__builtin_mul_overflow(channels, dim, &width) || width != geometry_.head_dim)
      return fail(Code::kBadShape, "size");
    const StorageFormat& storage = geometry_.storage;
    if (in_groups(storage.type) && channels > 1 && dim % storage.group != 0)
      return fail(Code::kBadShape, "dim: " + std::to_string(dim) + " is no multiple of group");
    if (channels_ != 0 && (channels != channels_ || dim != dim_))
      return fail(Code::kBadShape, "layout");
    return {};
  }
  /// How the original aborts when it copies the first `fits` positions (ZF-33, ZF-34, ZF-40).
  [[nodiscard]] Status check_copy(std::int64_t layer, const Rows& rows, std::int64_t fits) {
    if (fits == 0) return {};
    if (layer >= geometry_.num_layers) return fail(Code::kPrecondition, "layer beyond the pool");
    const Shape& shape = rows.k->shape;
    const std::int64_t v_cells = ((shape[0] - 1) * shape[1] + fits) * shape[2];
    if (rows.v->elements() < v_cells) return fail(Code::kPrecondition, "v is short");
    const std::int64_t start = cursors_[static_cast<std::size_t>(layer)];
    const std::int64_t end = std::min(blocks_of(start + fits), table_.size);
    for (std::int64_t i = start / geometry_.block_size; i < end; ++i)
      if (!table_[i].has_value()) return fail(Code::kPrecondition, "null entry");
    return {};
  }
  void pin(const Tensor& k) {
    channels_ = k.shape[0];
    dim_ = k.shape[2];
  }
  /// Takes the blocks that `end` positions need.
  [[nodiscard]] Status extend(std::int64_t end) {
    const std::int64_t missing = blocks_of(end) - table_.size;
    if (missing <= 0) return {};
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(missing));
    BlockTable grown = table_;
    grown.reserve(table_.size + missing);
    if (Status taken = pool_->alloc(owner_, blocks); !taken) return taken;
    for (const std::int64_t block : blocks) grown[grown.size++] = block;
    table_ = std::move(grown);
    return {};
  }
  void copy_position(std::int64_t layer, const Rows& rows, std::int64_t p) {
    const std::int64_t channels = rows.k->shape[0];
    const std::int64_t seq = rows.k->shape[1];
    const std::int64_t dim = rows.k->shape[2];
    const std::int64_t position = cursors_[static_cast<std::size_t>(layer)] + p;
    const std::int64_t block = *table_[position / geometry_.block_size];
    const std::int64_t slot = position % geometry_.block_size;
    const std::int64_t to = (layer * geometry_.block_size + slot) * geometry_.head_dim;
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto from = static_cast<std::size_t>((c * seq + p) * dim);
      const auto cells = static_cast<std::size_t>(dim);
      pool_->write(block, Side::kK, to + c * dim, rows.k->floats().subspan(from, cells));
      pool_->write(block, Side::kV, to + c * dim, rows.v->floats().subspan(from, cells));
    }
    pool_->set_used(block, std::max(pool_->used(block), slot + 1));
  }
  /// Frees the blocks beyond `needed` and lowers the cursors to n.
  [[nodiscard]] Status cut(std::int64_t n, std::int64_t needed) {
    std::vector<std::int64_t> surplus;
    for (std::int64_t i = needed; i < table_.size; ++i) {
      if (!table_[i].has_value()) return fail(Code::kPrecondition, "null entry");
      surplus.push_back(*table_[i]);
    }
    pool_->free(owner_, surplus);
    table_.size = needed;  // may be more than before: see ZF-40
    for (std::int64_t& cursor : cursors_) cursor = std::min(cursor, n);
    if (n == 0) channels_ = dim_ = 0;
    return {};
  }
  [[nodiscard]] std::int64_t blocks_of(std::int64_t positions) const {
    return positions == 0 ? 0 : (positions - 1) / geometry_.block_size + 1;
  }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::shared_ptr<block_pool::BlockPool> pool_;
  block_pool::Geometry geometry_;
  block_pool::Owner owner_;
  QuirkSet<Quirk> quirks_;
  std::int64_t channels_ = 0;
  std::int64_t dim_ = 0;
  BlockTable table_;
  std::vector<std::int64_t> cursors_;  ///< [layer], positions
};

}  // namespace kvo::provider
