// reference/provider/contiguous_cache.hpp: the reference of `provider.contiguous`.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "reference/contract/values/stored_rows.hpp"
#include "reference/provider/contiguous.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract: a zeroed K and V buffer a layer.
class ContiguousCache : public Contiguous {
 public:
  /// Errors  as MakeContiguous says.
  static Result<std::unique_ptr<Contiguous>> make(const ContiguousOptions& options,
                                                  QuirkSet<Quirk> quirks) {
    if (Status good = check(options.storage); !good) return good.error();
    if (Status good = check(options, quirks); !good) return good.error();
    return std::make_unique<ContiguousCache>(options, quirks);
  }

  ContiguousCache(const ContiguousOptions& options, QuirkSet<Quirk> quirks)
      : layers_(static_cast<std::size_t>(options.num_layers)),
        max_seq_len_(options.max_seq_len),
        storage_(options.storage),
        quirks_(quirks) {}

  [[nodiscard]] std::int64_t num_layers() const override {
    return static_cast<std::int64_t>(layers_.size());
  }
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    if (!has(layer)) return fail(Code::kOutOfRange, "layer");
    if (Status good = check_k(rows, quirks_); !good) return good;
    const std::int64_t batch = rows.k->shape[0];
    const std::int64_t seq = rows.k->shape[1];
    const std::int64_t dim = rows.k->shape[2];

    Layer next = layers_[static_cast<std::size_t>(layer)];  // shares the buffers
    if (!next.k) {
      if (Status pinned = pin(next, *rows.k); !pinned) return pinned;
    }
    if (batch != next.batch) return fail(Code::kBadShape, "batch");
    if (dim != next.dim) return fail(Code::kBadShape, "dim");
    const std::int64_t start = next.cursor;
    if (__builtin_add_overflow(start, seq, &next.cursor)) return overflow("seq");
    if (next.cursor > max_seq_len_) {
      next.cursor = start;
      if (quirks_.has(Quirk::kFullPins)) layers_[static_cast<std::size_t>(layer)] = std::move(next);
      return fail(Code::kFull);
    }
    next.cursor = start;
    if (Status good = check_v(next, rows); !good) return good;

    // Unsigned: with no batch at all, the product may be of any size.
    const std::size_t row = static_cast<std::size_t>(seq) * static_cast<std::size_t>(dim);
    for (std::int64_t b = 0; b < batch; ++b) {
      const auto from = static_cast<std::size_t>(b) * row;
      next.k->put(b * max_seq_len_ + start, rows.k->floats().subspan(from, row));
      next.v->put(b * max_seq_len_ + start, rows.v->floats().subspan(from, row));
    }
    next.cursor += seq;
    layers_[static_cast<std::size_t>(layer)] = std::move(next);
    return {};
  }
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override {
    if (!has(layer)) return std::nullopt;
    const Layer& from = layers_[static_cast<std::size_t>(layer)];
    const std::int64_t cursor = from.cursor;
    const std::int64_t batch = from.batch;
    const std::int64_t dim = from.dim;
    if (cursor < 0 && batch > 0 && dim > 0)
      return fail(Code::kPrecondition, "the cursor is negative");
    if (cursor <= 0) return std::nullopt;
    const Shape shape{batch, cursor, dim};
    if (batch == 1 || cursor == max_seq_len_)
      return KvPair{{shape, from.k}, {shape, from.v}};  // ZF-14

    const auto compact = [&](const StoredRows& full) {
      if (batch == 0) return std::make_shared<StoredRows>(storage_, dim, 0);
      const auto cells = static_cast<std::size_t>(batch * cursor * dim);
      auto rows = std::make_shared<StoredRows>(storage_, dim, cells);
      for (std::int64_t b = 0; b < batch; ++b)  // as they are stored
        std::ranges::copy(full.rows(b * max_seq_len_, cursor),
                          rows->rows(b * cursor, cursor).begin());
      return rows;
    };
    return KvPair{{shape, compact(*from.k)}, {shape, compact(*from.v)}};
  }
  [[nodiscard]] std::int64_t seq_len() const override {
    return layers_.empty() ? 0 : layers_.front().cursor;
  }
  [[nodiscard]] Status reset() override {
    for (Layer& layer : layers_) layer.cursor = 0;
    return {};
  }
  [[nodiscard]] Status truncate(std::int64_t n) override {
    if (!quirks_.has(Quirk::kNegativeLengths)) n = std::max<std::int64_t>(n, 0);
    for (Layer& layer : layers_) layer.cursor = std::min(layer.cursor, n);
    return {};
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    for (const Layer& layer : layers_) {
      if (layer.cursor > 0 && layer.cursor > max_seq_len_) return "a cursor is past max_seq_len";
      if (layer.cursor > 0 && !layer.k) return "a layer without buffers has positions";
    }
    return std::nullopt;
  }

 private:
  struct Layer {
    std::shared_ptr<StoredRows> k;  ///< [batch][max_seq_len][dim]; null until pinned
    std::shared_ptr<StoredRows> v;
    std::int64_t cursor = 0;
    std::int64_t batch = 0;
    std::int64_t dim = 0;
  };

  /// Pins batch and dim of K and makes the buffers (ZF-9.3).
  [[nodiscard]] Status pin(Layer& layer, const Tensor& k) const {
    layer.batch = k.shape[0];
    layer.dim = k.shape[2];
    std::int64_t cells = 0;
    if (__builtin_mul_overflow(layer.batch, max_seq_len_, &cells) ||
        __builtin_mul_overflow(cells, layer.dim, &cells))
      return overflow("max_seq_len");
    if (cells < 0) return fail(Code::kPrecondition, "max_seq_len");  // ZF-8, ZF-9.3
    layer.k = std::make_shared<StoredRows>(storage_, layer.dim, static_cast<std::size_t>(cells));
    layer.v = std::make_shared<StoredRows>(storage_, layer.dim, static_cast<std::size_t>(cells));
    return {};
  }
  /// Whether V can be copied into `layer` with K's sizes (ZF-9.7, ZF-11, ZF-18).
  [[nodiscard]] Status check_v(const Layer& layer, const Rows& rows) const {
    if (Status good = provider::check_v(rows, quirks_, Quirk::kContiguousVIgnored); !good)
      return good;
    if (rows.v->elements() < rows.k->elements()) return fail(Code::kPrecondition, "v is short");
    if (layer.cursor < 0 && layer.batch > 0 && layer.dim > 0)
      return fail(Code::kPrecondition, "the cursor is negative");
    return {};
  }
  /// What a size product that does not fit answers (ZF-1).
  [[nodiscard]] Error overflow(const char* what) const {
    return fail(quirks_.has(Quirk::kOverflowAborts) ? Code::kPrecondition : Code::kOutOfRange,
                what);
  }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::vector<Layer> layers_;
  std::int64_t max_seq_len_;
  StorageFormat storage_;
  QuirkSet<Quirk> quirks_;
};

}  // namespace kvo::provider
