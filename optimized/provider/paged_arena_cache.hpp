// optimized/provider/paged_arena_cache.hpp: `provider.paged`, fast on a CPU.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "optimized/memory/arena.hpp"
#include "optimized/memory/convert.hpp"
#include "optimized/provider/paged_control.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/contract/values/stored_rows.hpp"

namespace kvo::optimized {

/// Copies all positions of a block at once: a position is divided by the block size once a call,
/// and the pool is asked once a block. Needs a pool whose blocks are in host memory.
class PagedArenaCache final : public PagedControl<PagedArenaCache> {
 public:
  /// Errors  as provider::MakePaged says.
  static Result<std::unique_ptr<provider::Paged>> make(const provider::PagedOptions& options,
                                                       QuirkSet<Quirk> quirks) {
    if (Status good = provider::check(options, quirks); !good) return good.error();
    return std::make_unique<PagedArenaCache>(options, quirks);
  }

  PagedArenaCache(const provider::PagedOptions& options, QuirkSet<Quirk> quirks)
      : PagedControl(options, quirks) {}

  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override {
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

 private:
  friend PagedControl;
  [[nodiscard]] Status put(std::int64_t layer, const Rows& rows, std::int64_t fits) {
    Status taken = extend(blocks_of(cursors_[static_cast<std::size_t>(layer)] + fits));
    if (taken) store(layer, rows, fits);
    return taken;
  }
  [[nodiscard]] static Status reserve_table(std::size_t /*capacity*/) { return {}; }
  static void moved_table() {}
  static void cut_table() {}

  struct FloatSides {
    std::span<float> k;
    std::span<float> v;
  };

  /// The cells of a block whose rows are f32.
  static FloatSides floats_of(const block_pool::Sides& sides) {
    const auto floats = [](std::span<std::byte> side) {
      return std::span(reinterpret_cast<float*>(side.data()), side.size() / sizeof(float));
    };
    return {floats(sides.k), floats(sides.v)};
  }
  /// Consecutive positions in one block.
  struct Run {
    std::int64_t position;  ///< of the first, counted from where the call began
    std::int64_t slot;      ///< of the first
    std::int64_t count;
    std::int64_t block;
  };
  /// Calls visit(run) for each block that holds positions [start, start + count).
  template <class Visit>
  void for_each_run(std::int64_t start, std::int64_t count, Visit&& visit) const {
    auto entry = static_cast<std::size_t>(start / block_size_);
    std::int64_t slot = start % block_size_;
    for (std::int64_t p = 0; p < count; ++entry, slot = 0) {
      const std::int64_t run = std::min(block_size_ - slot, count - p);
      visit(Run{p, slot, run, entries_[entry]});
      p += run;
    }
  }

  void store(std::int64_t layer, const Rows& rows, std::int64_t count) {
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
      note_used(run.block, run.slot + run.count);
      // Most likely the next layer's row of this token comes now, or the next token of the first
      // one.
      const bool is_last = layer + 1 == pool_layers_;
      const std::int64_t next =
          is_last ? (run.slot + 1) % block_size_ * head_dim_ : to + block_size_ * head_dim_;
      will_write(sides.k.data() + next, head_dim_);
      will_write(sides.v.data() + next, head_dim_);
    });
  }
  /// Rows that are no f32: stored, and gathered as they are stored.
  void store_narrow(std::int64_t layer, const Rows& rows, std::int64_t count) {
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
      const block_pool::Sides stored = pool_->sides(run.block);
      const std::int64_t to = (layer * block_size_ + run.slot) * position_bytes;
      const std::int64_t from = run.position * dim;
      encode_run(stored.k.data() + to, rows.k->floats().data() + from, run.count);
      encode_run(stored.v.data() + to, rows.v->floats().data() + from, run.count);
      note_used(run.block, run.slot + run.count);
    });
  }
  [[nodiscard]] KvPair gather_narrow(std::int64_t layer, std::int64_t cursor) {
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
          std::memcpy(to + (c * length + p) * row_bytes,
                      stored + p * position_bytes + c * row_bytes, row_bytes);
    };
    for_each_run(0, cursor, [&, &k = k, &v = v](const Run& run) {
      const block_pool::Sides stored = pool_->sides(run.block);
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

  ResultSides results_;
};

}  // namespace kvo::optimized
