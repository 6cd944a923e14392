// optimized/provider/paged_control.hpp: what caches of `provider.paged` decide in any memory.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "reference/provider/paged.hpp"

namespace kvo::optimized {

/// Which updates a cache takes, and which blocks its table has. `Self` has
///   put(layer, rows, fits)     extends the table, and stores the first `fits` positions
///   reserve_table(capacity)    makes memory for a table that grows, where that is separate
///   moved_table(), cut_table() the table has grown into that memory; it has become shorter
template <class Self>
class PagedControl : public provider::Paged {
 public:
  using KvPair = provider::KvPair;
  using Quirk = provider::Quirk;
  using Rows = provider::Rows;

  [[nodiscard]] std::int64_t num_layers() const override { return std::ssize(cursors_); }
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
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
    if (Status stored = self().put(layer, rows, fits); !stored) return stored;
    if (pins) pin(*rows.k);
    if (fits < seq) return fail(Code::kExhausted);
    cursor += seq;
    return {};
  }
  [[nodiscard]] std::int64_t seq_len() const override {
    return cursors_.empty() ? 0 : cursors_.front();
  }
  [[nodiscard]] Status reset() override { return cut(0, 0); }
  [[nodiscard]] Status truncate(std::int64_t n) override {
    n = std::max<std::int64_t>(n, 0);
    const bool shortens = std::ranges::any_of(cursors_, [&](std::int64_t c) { return c > n; });
    if (!shortens && !has(Quirk::kTruncateExtends)) return {};
    const std::int64_t needed = blocks_of(n);
    if (needed > std::ssize(entries_)) return fail(Code::kPrecondition, "n past the table");
    if (Status done = cut(n, needed); !done) return done;
    const std::int64_t last = needed > 0 ? entries_[static_cast<std::size_t>(needed - 1)] : kNull;
    if (last != kNull && !has(Quirk::kCutBlockKeepsUsed))  // ZF-39
      pool_->set_used(last, n - (needed - 1) * block_size_);
    return {};
  }
  [[nodiscard]] Status free() override { return cut(0, 0); }
  [[nodiscard]] provider::ShownTable table() const override {
    provider::ShownTable seen{.blocks = {}, .cursors = cursors_};
    seen.blocks.reserve(static_cast<std::size_t>(size_));
    for (const auto entry : std::span(entries_).first(static_cast<std::size_t>(size_)))
      seen.blocks.push_back(entry == kNull ? std::nullopt : std::optional<std::int64_t>(entry));
    return seen;
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    for (const std::int64_t cursor : cursors_)
      if (blocks_of(cursor) > size_) return "a cursor is past the block table";
    return std::nullopt;
  }

 protected:
  static constexpr std::int64_t kNull = -1;

  PagedControl(const provider::PagedOptions& options, QuirkSet<Quirk> quirks)
      : pool_(options.pool),
        owner_(options.owner),
        quirks_(quirks),
        pool_layers_(options.pool->geometry().num_layers),
        block_size_(options.pool->geometry().block_size),
        head_dim_(options.pool->geometry().head_dim),
        storage_(options.pool->geometry().storage),
        cursors_(static_cast<std::size_t>(options.num_layers)) {}

  /// Takes blocks until the table has so many.
  [[nodiscard]] Status extend(std::int64_t blocks) {
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
      if (Status there = self().reserve_table(capacity); !there) return there;
    }
    if (Status done = pool_->alloc(owner_, {taken.data(), taken.size()}); !done) return done;
    if (!grown.empty()) {
      entries_ = std::move(grown);
      self().moved_table();
    }
    std::ranges::copy(taken, entries_.begin() + size_);
    size_ = blocks;
    return {};
  }
  /// Counts positions of a block, up to its slot `end`, among those used.
  void note_used(std::int64_t block, std::int64_t end) const {
    if (pool_->used(block) < end) pool_->set_used(block, end);
  }
  [[nodiscard]] std::int64_t blocks_of(std::int64_t positions) const {
    return positions == 0 ? 0 : (positions - 1) / block_size_ + 1;
  }
  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::shared_ptr<block_pool::BlockPool> pool_;
  block_pool::Owner owner_;
  QuirkSet<Quirk> quirks_;
  std::int64_t pool_layers_;
  std::int64_t block_size_;
  std::int64_t head_dim_;
  StorageFormat storage_;
  std::int64_t channels_ = 0;
  std::int64_t dim_ = 0;
  std::int64_t size_ = 0;              ///< blocks in the table
  std::vector<std::int64_t> entries_;  ///< [capacity] of ZF-5, kNull where nothing was written
  std::vector<std::int64_t> cursors_;  ///< [layer], positions

 private:
  [[nodiscard]] Self& self() { return static_cast<Self&>(*this); }
  void pin(const Tensor& k) {
    channels_ = k.shape[0];
    dim_ = k.shape[2];
  }
  [[nodiscard]] Status check(std::int64_t layer, const Rows& rows) const {
    if (!has(layer)) return fail(Code::kOutOfRange, "layer");
    if (Status good = provider::check_k(rows, quirks_); !good) return good;
    const Shape& shape = rows.k->shape;
    std::int64_t width = 0;
    if (__builtin_mul_overflow(shape[0], shape[2], &width) || width != head_dim_)
      return fail(Code::kBadShape, "size");
    if (in_groups(storage_.type) && shape[0] > 1 && shape[2] % storage_.group != 0)
      return fail(Code::kBadShape, "dim: " + std::to_string(shape[2]) + " is no multiple of group");
    if (channels_ != 0 && (shape[0] != channels_ || shape[2] != dim_))
      return fail(Code::kBadShape, "layout");
    return provider::check_v(rows, quirks_, Quirk::kPagedVIgnored);
  }
  /// How the original aborts when it copies `fits` positions (ZF-33, ZF-34, ZF-40).
  [[nodiscard]] Status check_copy(std::int64_t layer, const Rows& rows, std::int64_t fits) const {
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
  [[nodiscard]] Status cut(std::int64_t n, std::int64_t needed) {
    if (needed < size_) {
      const auto surplus = std::span<const std::int64_t>(entries_).subspan(
          static_cast<std::size_t>(needed), static_cast<std::size_t>(size_ - needed));
      if (std::ranges::find(surplus, kNull) != surplus.end())
        return fail(Code::kPrecondition, "null entry");
      pool_->free(owner_, surplus);
    }
    size_ = needed;
    self().cut_table();
    for (std::int64_t& cursor : cursors_) cursor = std::min(cursor, n);
    if (n == 0) channels_ = dim_ = 0;
    return {};
  }
};

}  // namespace kvo::optimized
