// optimized/provider/contiguous_arena_cache.hpp: `provider.contiguous`, fast on a CPU.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "optimized/memory/arena.hpp"
#include "optimized/memory/convert.hpp"
#include "optimized/provider/contiguous_control.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/contract/values/stored_rows.hpp"

namespace kvo::optimized {

/// The memory of a layer, and what it holds.
struct ContiguousArenaLayer {
  Buffer k;  ///< [batch][max_seq_len][dim]; without storage until pinned
  Buffer v;
  std::int64_t cursor = 0;
  std::int64_t batch = 0;
  std::int64_t dim = 0;
  std::size_t cells = 0;                    ///< of a buffer
  std::shared_ptr<StoredRows> k_rows = {};  ///< what shows the buffer; null for f32
  std::shared_ptr<StoredRows> v_rows = {};

  [[nodiscard]] bool exists() const { return k.storage != nullptr; }
};

/// The buffers of all layers lie in one arena that is never cleared (a query shows written cells
/// only), and a batch row is copied as one run. Rows that are no f32 lie there in their own bytes.
class ContiguousArenaCache final
    : public ContiguousControl<ContiguousArenaCache, ContiguousArenaLayer> {
 public:
  /// Errors  as provider::MakeContiguous says.
  static Result<std::unique_ptr<provider::Contiguous>> make(
      const provider::ContiguousOptions& options, QuirkSet<Quirk> quirks) {
    if (Status good = kvo::check(options.storage); !good) return good.error();
    if (Status good = provider::check(options, quirks); !good) return good.error();
    return std::make_unique<ContiguousArenaCache>(options, quirks);
  }

  ContiguousArenaCache(const provider::ContiguousOptions& options, QuirkSet<Quirk> quirks)
      : ContiguousControl(options, quirks), storage_(options.storage) {}

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    for (const Layer& layer : layers_)
      for (const Buffer& side : {layer.k, layer.v})
        if (side.storage && !guard_holds(side.data(), layer.cells))
          return "rows lie behind a buffer";
    return ContiguousControl::broken_invariant();
  }

 private:
  friend ContiguousControl;
  using Layer = ContiguousArenaLayer;

  [[nodiscard]] Status put(Layer& to, const Rows& rows, std::int64_t cells, bool full) {
    if (!to.exists()) pin(to, *rows.k, cells_for(cells, rows.k->shape[2]));
    if (full || rows.k->bytes.empty()) return {};
    if (is_narrow()) {
      store_narrow(to, rows);
      return {};
    }
    const std::int64_t batch = to.batch;
    const std::int64_t run = rows.k->shape[1] * to.dim;
    const std::int64_t stride = max_seq_len_ * to.dim;
    const std::int64_t start = to.cursor * to.dim;
    will_write({to.v.data() + start, stride}, batch, run);
    copy_rows({to.k.data() + start, stride}, {rows.k->floats().data(), run}, batch, run);
    copy_rows({to.v.data() + start, stride}, {rows.v->floats().data(), run}, batch, run);
    return {};
  }
  void stored(std::int64_t layer) const {
    if (is_narrow()) return;
    // Most likely the next layer's token comes now, a row as this one.
    const Layer& next = layers_[layer + 1 < num_layers() ? static_cast<std::size_t>(layer) + 1 : 0];
    for (const Buffer* side : {&next.k, &next.v})
      if (side->storage && next.batch > 0)
        will_write({side->data() + next.cursor * next.dim, max_seq_len_ * next.dim}, next.batch,
                   next.dim);
  }
  [[nodiscard]] KvPair shown(const Layer& from) {
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
  [[nodiscard]] bool is_narrow() const { return storage_.type != StorageType::kF32; }
  /// Arena cells that elements take, in rows of `dim`.
  [[nodiscard]] std::size_t cells_for(std::int64_t elements, std::int64_t dim) const {
    const auto count = static_cast<std::size_t>(elements);
    return is_narrow() ? cells_of_bytes(StoredRows::bytes_of(storage_, dim, count)) : count;
  }
  /// Stores rows that are no f32 behind the cursor.
  void store_narrow(const Layer& to, const Rows& rows) {
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
  /// Such rows, gathered as they are stored.
  [[nodiscard]] KvPair gather_narrow(const Layer& from) {
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
  /// Shows a buffer that holds such rows, in so many bytes.
  [[nodiscard]] std::shared_ptr<StoredRows> shown(const Buffer& buffer, std::size_t bytes,
                                                  std::int64_t dim) const {
    return std::make_shared<StoredRows>(storage_, dim, std::span(buffer.bytes(), bytes),
                                        buffer.storage);
  }
  /// Makes the buffers of a layer, of `cells` each, and pins K's batch and dim.
  void pin(Layer& layer, const Tensor& k, std::size_t cells) {
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

  Arena arena_{.written = Written::kBitByBit};
  ResultSides results_;
  StorageFormat storage_;
};

}  // namespace kvo::optimized
