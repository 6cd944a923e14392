// Blocks of a pool for each sequence, one list; a result is copied out of them, so that what comes
// later does not show in it.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "examples/own_caches/own_caches.hpp"
#include "reference/block_pool/stack_pool.hpp"
#include "reference/contract/values/stored_rows.hpp"
#include "reference/provider/paged.hpp"

namespace kvo::provider {
namespace {

using block_pool::Side;

enum Fault {
  kNone,
  kLastRowOfABlockWrong,
  kSecondLayerReadsTheFirst,
  kTruncateLeavesOne,
  kTruncateKeepsBlocks,
  kResetKeepsCursors,
  kChannelsSwapped,
  kValueIsTheKey,
  kThirdBlockTakenTwice,
  kFailedAppendCounts,
  kLongUpdateLosesItsLastRow,
};

class PagedCopy final : public Paged {
 public:
  PagedCopy(const PagedOptions& options, int fault)
      : pool_(options.pool),
        geometry_(options.pool->geometry()),
        owner_(options.owner),
        fault_(fault),
        cursors_(static_cast<std::size_t>(options.num_layers)) {}

  [[nodiscard]] std::int64_t num_layers() const override { return std::ssize(cursors_); }
  [[nodiscard]] std::int64_t seq_len() const override {
    return cursors_.empty() ? 0 : cursors_.front();
  }
  Status update(std::int64_t layer, const Rows& rows) override {
    if (layer < 0 || layer >= num_layers()) return fail(Code::kPrecondition, "layer");
    if (rows.k == nullptr || rows.v == nullptr || rows.k->shape.size() != 3 ||
        rows.v->shape != rows.k->shape)
      return fail(Code::kPrecondition, "shape");
    const Shape& shape = rows.k->shape;
    std::int64_t width = 0;
    if (__builtin_mul_overflow(shape[0], shape[2], &width) || width != geometry_.head_dim)
      return fail(Code::kPrecondition, "size");
    const StorageFormat& storage = geometry_.storage;
    if (in_groups(storage.type) && shape[0] > 1 && shape[2] % storage.group != 0)
      return fail(Code::kPrecondition, "dim is no multiple of group");
    if (channels_ != 0 && (shape[0] != channels_ || shape[2] != dim_))
      return fail(Code::kPrecondition, "layout");
    std::int64_t& cursor = cursors_[static_cast<std::size_t>(layer)];
    const std::int64_t end = cursor + shape[1];
    const std::int64_t missing = blocks_of(end) - std::ssize(blocks_);
    if (missing > pool_->available()) {
      if (fault_ == kFailedAppendCounts && shape[1] > 1) cursor += pool_->available();
      return fail(Code::kExhausted);
    }
    if (missing > 0) {
      std::vector<std::int64_t> taken(static_cast<std::size_t>(missing));
      if (Status done = pool_->alloc(owner_, taken); !done) return done;
      if (fault_ == kThirdBlockTakenTwice && blocks_.size() == 2) taken.front() = blocks_.front();
      blocks_.insert(blocks_.end(), taken.begin(), taken.end());
    }
    if (shape[1] > 0) {
      channels_ = shape[0];
      dim_ = shape[2];
    }
    for (std::int64_t p = 0; p < shape[1]; ++p) put(layer, cursor + p, rows, p);
    cursor = end;
    return {};
  }
  Result<std::optional<KvPair>> get(std::int64_t layer) override {
    if (layer < 0 || layer >= num_layers()) return std::nullopt;
    const std::int64_t cursor = cursors_[static_cast<std::size_t>(layer)];
    if (cursor == 0) return std::nullopt;
    const std::int64_t read = fault_ == kSecondLayerReadsTheFirst && layer == 1 ? 0 : layer;
    const Shape shape{channels_, cursor, dim_};
    const auto v = fault_ == kValueIsTheKey && cursor > 6 ? Side::kK : Side::kV;
    return KvPair{{shape, copied(read, cursor, Side::kK)}, {shape, copied(read, cursor, v)}};
  }
  Status reset() override {
    if (fault_ != kResetKeepsCursors || cursors_.size() < 2) return free();
    const std::int64_t last = cursors_.back();
    if (Status done = free(); !done) return done;
    cursors_.back() = std::min<std::int64_t>(last, 1);
    return {};
  }
  Status truncate(std::int64_t n) override {
    n = std::max<std::int64_t>(n, 0);
    const std::int64_t longest = cursors_.empty() ? 0 : *std::ranges::max_element(cursors_);
    if (n >= longest) return {};
    const std::int64_t left = n + (fault_ == kTruncateLeavesOne && n > 2 ? 1 : 0);
    const std::int64_t remaining =
        blocks_of(left) + (fault_ == kTruncateKeepsBlocks && n > 0 ? 1 : 0);
    if (std::ssize(blocks_) > remaining) {
      pool_->free(owner_, std::span(blocks_).subspan(static_cast<std::size_t>(remaining)));
      blocks_.resize(static_cast<std::size_t>(remaining));
    }
    for (std::int64_t& cursor : cursors_) cursor = std::min(cursor, left);
    if (left > 0)
      pool_->set_used(blocks_[static_cast<std::size_t>(blocks_of(left) - 1)],
                      left - (blocks_of(left) - 1) * geometry_.block_size);
    if (n == 0) channels_ = dim_ = 0;
    return {};
  }
  Status free() override {
    pool_->free(owner_, blocks_);
    blocks_.clear();
    std::ranges::fill(cursors_, 0);
    channels_ = dim_ = 0;
    return {};
  }
  [[nodiscard]] ShownTable table() const override {
    return {{blocks_.begin(), blocks_.end()}, cursors_};
  }

 private:
  [[nodiscard]] std::int64_t blocks_of(std::int64_t positions) const {
    return (positions + geometry_.block_size - 1) / geometry_.block_size;
  }
  [[nodiscard]] std::int64_t block_at(std::int64_t position) const {
    return blocks_[static_cast<std::size_t>(position / geometry_.block_size)];
  }
  // Where the cells of a layer's position begin in a side of its block.
  [[nodiscard]] std::int64_t cell_of(std::int64_t layer, std::int64_t position) const {
    return (layer * geometry_.block_size + position % geometry_.block_size) * geometry_.head_dim;
  }
  void put(std::int64_t layer, std::int64_t position, const Rows& rows, std::int64_t p) {
    const std::int64_t seq = rows.k->shape[1];
    const std::int64_t slot = position % geometry_.block_size;
    if (fault_ == kLongUpdateLosesItsLastRow && seq > 4 && p == seq - 1) return;
    for (std::int64_t c = 0; c < channels_; ++c) {
      const auto from = static_cast<std::size_t>((c * seq + p) * dim_);
      const auto cells = static_cast<std::size_t>(dim_);
      const std::int64_t to = fault_ == kChannelsSwapped && channels_ > 1 ? channels_ - 1 - c : c;
      const std::int64_t at = cell_of(layer, position) + to * dim_;
      pool_->write(block_at(position), Side::kK, at, rows.k->floats().subspan(from, cells));
      const bool wrong =
          fault_ == kLastRowOfABlockWrong && slot > 0 && slot == geometry_.block_size - 1;
      pool_->write(block_at(position), Side::kV, at,
                   (wrong ? *rows.k : *rows.v).floats().subspan(from, cells));
    }
    pool_->set_used(block_at(position), std::max(pool_->used(block_at(position)), slot + 1));
  }
  [[nodiscard]] std::shared_ptr<StoredRows> copied(std::int64_t layer, std::int64_t cursor,
                                                   Side side) {
    auto rows = std::make_shared<StoredRows>(geometry_.storage, dim_,
                                             static_cast<std::size_t>(channels_ * cursor * dim_));
    for (std::int64_t p = 0; p < cursor; ++p)
      for (std::int64_t c = 0; c < channels_; ++c)
        std::ranges::copy(pool_->stored(block_at(p), side, cell_of(layer, p) + c * dim_, dim_),
                          rows->rows(c * cursor + p, 1).begin());
    return rows;
  }

  std::shared_ptr<block_pool::BlockPool> pool_;
  block_pool::Geometry geometry_;
  block_pool::Owner owner_;
  int fault_;
  std::int64_t channels_ = 0;
  std::int64_t dim_ = 0;
  std::vector<std::int64_t> blocks_;
  std::vector<std::int64_t> cursors_;  // by layer
};

Subject make_own(std::string variant, int fault) {
  Subject made = make_paged_subject(
      std::move(variant), "results are copied out of the blocks", block_pool::StackPool::make,
      [fault](const PagedOptions& options,
              QuirkSet<Quirk> /*quirks*/) -> Result<std::unique_ptr<Paged>> {
        if (!options.pool || options.num_layers < 0 ||
            options.num_layers > options.pool->geometry().num_layers)
          return fail(Code::kBadShape, "pool, num_layers");
        return std::make_unique<PagedCopy>(options, fault);
      });
  made.survives_failed_allocation = false;
  return made;
}

}  // namespace
}  // namespace kvo::provider

namespace own {

Cache provider_paged_copy() {
  return {{"last_row_of_a_block_wrong", "second_layer_reads_the_first", "truncate_leaves_one",
           "truncate_keeps_blocks", "reset_keeps_cursors", "channels_swapped", "value_is_the_key",
           "third_block_taken_twice", "failed_append_counts", "long_update_loses_its_last_row"},
          kvo::provider::make_own};
}

}  // namespace own
