// optimized/provider/contiguous_control.hpp: what caches of `provider.contiguous` decide in any
// memory.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/provider/contiguous.hpp"

namespace kvo::optimized {

/// Which updates a cache takes, and how long its layers are. `Layer` has its memory, whether it
/// `exists()`, and `cursor`, `batch` and `dim`. `Self` has
///   put(layer, rows, cells, full)  makes the memory of a layer that has none, `cells` elements a
///                                  side, for the batch and dim of K; stores the rows unless `full`
///   stored(layer)                  what comes after a successful update
///   shown(layer)                   the rows of a layer that has some
template <class Self, class Layer>
class ContiguousControl : public provider::Contiguous {
 public:
  using KvPair = provider::KvPair;
  using Quirk = provider::Quirk;
  using Rows = provider::Rows;

  [[nodiscard]] std::int64_t num_layers() const override { return std::ssize(layers_); }
  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    if (!has(layer)) return fail(Code::kOutOfRange, "layer");
    if (Status good = provider::check_k(rows, quirks_); !good) return good;
    const std::int64_t batch = rows.k->shape[0];
    const std::int64_t dim = rows.k->shape[2];
    Layer& to = layers_[static_cast<std::size_t>(layer)];

    const bool pinned = to.exists();
    std::int64_t cells = 0;
    std::int64_t end = 0;
    if (pinned && batch != to.batch) return fail(Code::kBadShape, "batch");
    if (pinned && dim != to.dim) return fail(Code::kBadShape, "dim");
    if (!pinned && (__builtin_mul_overflow(batch, max_seq_len_, &cells) ||
                    __builtin_mul_overflow(cells, dim, &cells)))
      return size_error("max_seq_len");
    if (cells < 0) return fail(Code::kPrecondition, "max_seq_len");
    if (__builtin_add_overflow(to.cursor, rows.k->shape[1], &end)) return size_error("seq");
    const bool full = end > max_seq_len_;
    if (full && (pinned || !has(Quirk::kFullPins))) return fail(Code::kFull);  // ZF-10
    if (!full) {
      if (Status good = check_v(to, rows); !good) return good;
    }
    if (Status done = self().put(to, rows, cells, full); !done) return done;
    if (full) return fail(Code::kFull);
    to.cursor = end;
    self().stored(layer);
    return {};
  }
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override {
    if (!has(layer)) return std::nullopt;
    const Layer& from = layers_[static_cast<std::size_t>(layer)];
    if (from.cursor > 0) return self().shown(from);
    if (from.cursor < 0 && from.batch > 0 && from.dim > 0)
      return fail(Code::kPrecondition, "cursor < 0");
    return std::nullopt;
  }
  [[nodiscard]] std::int64_t seq_len() const override {
    return layers_.empty() ? 0 : layers_.front().cursor;
  }
  [[nodiscard]] Status reset() override {
    for (Layer& layer : layers_) layer.cursor = 0;
    return {};
  }
  [[nodiscard]] Status truncate(std::int64_t n) override {
    if (n < 0 && !has(Quirk::kNegativeLengths)) n = 0;
    for (Layer& layer : layers_) layer.cursor = std::min(layer.cursor, n);
    return {};
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    for (const Layer& layer : layers_) {
      if (layer.cursor <= 0) continue;
      if (!layer.exists()) return "a layer without buffers has positions";
      if (layer.cursor > max_seq_len_) return "a cursor is past max_seq_len";
    }
    return std::nullopt;
  }

 protected:
  ContiguousControl(const provider::ContiguousOptions& options, QuirkSet<Quirk> quirks)
      : layers_(static_cast<std::size_t>(options.num_layers)),
        max_seq_len_(options.max_seq_len),
        quirks_(quirks) {}

  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::vector<Layer> layers_;
  std::int64_t max_seq_len_;
  QuirkSet<Quirk> quirks_;

 private:
  [[nodiscard]] Self& self() { return static_cast<Self&>(*this); }
  [[nodiscard]] Error size_error(const char* what) const {
    return fail(has(Quirk::kOverflowAborts) ? Code::kPrecondition : Code::kOutOfRange, what);
  }
  [[nodiscard]] Status check_v(const Layer& layer, const Rows& rows) const {
    if (Status good = provider::check_v(rows, quirks_, Quirk::kContiguousVIgnored); !good)
      return good;
    if (rows.v->bytes.size() < rows.k->bytes.size()) return fail(Code::kPrecondition, "v is short");
    if (layer.cursor < 0 && rows.k->shape[0] > 0 && rows.k->shape[2] > 0)  // ZF-18
      return fail(Code::kPrecondition, "cursor < 0");
    return {};
  }
};

}  // namespace kvo::optimized
