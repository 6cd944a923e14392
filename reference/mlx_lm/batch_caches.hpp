// reference/mlx_lm/batch_caches.hpp: caches of several sequences, padded at the left.
//
// Words    columns  slots that all rows have in common.
// Source   rules ML-40 to ML-56.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "reference/mlx_lm/plain_caches.hpp"

namespace kvo::mlx_lm {

/// What the rows of a batch have each.
struct Rows {
  Buffers buffers = {};
  SharedInts padding = nullptr;  ///< shared by shallow copies
  Ints offset = {};              ///< tokens, below 0 while padding comes

  /// Empty rows of that padding.
  [[nodiscard]] static Rows padded(const Ints& left_padding);
  [[nodiscard]] Rows cloned() const {
    return {buffers.cloned(), std::make_shared<Ints>(*padding), offset};
  }
  /// These rows in this order. Errors  Misuse: no such row.
  [[nodiscard]] Rows only(const Ints& rows) const;
  /// More padding of an empty batch. Errors  Misuse: there is a buffer (ML-45).
  void add_padding(Writes& writes, const Ints& more);
  /// Each row moved right by so many columns, which become padding (ML-45, ML-50).
  /// Errors  Misuse: there is no buffer.
  void move_right(Writes& writes, Ints& current_padding, const Ints& columns);
  [[nodiscard]] Value shown_padding() const { return ints_of(*padding); }
  [[nodiscard]] Value shown_offset() const { return ints_of(offset); }
};

/// The rows of two batches, right-justified (ML-44).
/// Errors  Misuse: they do not fit each other.
[[nodiscard]] Rows extended(const Rows& one, std::int64_t idx, const Rows& other,
                            std::int64_t other_idx);

/// A note that a batch may have, and may lack.
struct Note {
  bool missing = false;  ///< made from a state in profile original (ML-46)
  std::optional<Ints> numbers = std::nullopt;
  /// The numbers, if there are some. Errors  Misuse: the note is missing.
  [[nodiscard]] const Ints* read() const {
    if (missing) throw Misuse("the state has no such note");
    return numbers ? &*numbers : nullptr;
  }
};

struct BatchKvState {
  Rows rows = {};
  std::int64_t idx = 0;  ///< columns in use
  Note right_padding = {};
};

class BatchKvCache final : public Cache, private Changing<BatchKvState> {
 public:
  BatchKvCache(std::int64_t step, QuirkSet<Quirk> quirks, BatchKvState state)
      : Changing(std::move(state), quirks), step_(step) {}
  /// ML-42. Errors  Misuse: other kinds of caches, or buffers that do not fit.
  [[nodiscard]] static CachePtr merged(std::span<const Cache* const> caches, std::int64_t step,
                                       QuirkSet<Quirk> quirks);

  [[nodiscard]] std::string_view kind() const override { return "batch-kv"; }
  [[nodiscard]] Value::List state() const override {
    return {s_.rows.buffers.k, s_.rows.buffers.v, s_.rows.shown_offset(), s_.rows.shown_padding(),
            s_.idx};
  }
  [[nodiscard]] Result<Info> info() const override {
    return Info{s_.idx, !s_.rows.buffers.k, s_.rows.buffers.bytes(), true};
  }
  [[nodiscard]] bool is_trimmable() const override { return true; }
  [[nodiscard]] CachePtr copy(bool deep) const override;
  [[nodiscard]] Result<CachePtr> from_state() const override;
  [[nodiscard]] Result<Value> offset() const override;
  [[nodiscard]] Result<Pair> update(const Array& k, const Array& v) override;
  [[nodiscard]] Result<Pair> keys_and_values() const override;
  [[nodiscard]] Result<std::int64_t> trim(std::int64_t n) override;
  [[nodiscard]] Result<Value> make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                        bool return_array) const override;
  [[nodiscard]] Result<CachePtr> extract(std::int64_t row) const override;
  [[nodiscard]] Status filter(const Ints& rows) override;
  [[nodiscard]] Status extend(Cache& other) override;
  [[nodiscard]] Status prepare(const std::optional<Ints>& left_padding,
                               const std::optional<Ints>& lengths,
                               const std::optional<Ints>& right_padding) override;
  [[nodiscard]] Status finalize() override;

 private:
  std::int64_t step_;
};

struct BatchRotatingState {
  Rows rows = {};
  std::int64_t max_size = 0;
  std::int64_t count = 0;  ///< columns ever written
  std::int64_t idx = 0;    ///< column that is written next
  bool rotated = false;
  Note lengths = {};

  void bring_into_time_order();
};

class BatchRotatingCache final : public Cache, private Changing<BatchRotatingState> {
 public:
  BatchRotatingCache(std::int64_t step, QuirkSet<Quirk> quirks, BatchRotatingState state)
      : Changing(std::move(state), quirks), step_(step) {}
  /// ML-52. Errors  Misuse: as BatchKvCache::merged, or other windows.
  [[nodiscard]] static CachePtr merged(std::span<const Cache* const> caches, std::int64_t step,
                                       QuirkSet<Quirk> quirks);

  [[nodiscard]] std::string_view kind() const override { return "batch-rotating"; }
  [[nodiscard]] Value::List state() const override {
    return {s_.rows.buffers.k,
            s_.rows.buffers.v,
            s_.rows.shown_offset(),
            s_.rows.shown_padding(),
            s_.max_size,
            s_.count,
            s_.idx,
            s_.rotated};
  }
  [[nodiscard]] Result<Info> info() const override {
    return Info{std::min(s_.count, s_.max_size), !s_.rows.buffers.k, s_.rows.buffers.bytes(),
                is_trimmable()};
  }
  [[nodiscard]] bool is_trimmable() const override { return s_.count < s_.max_size; }
  [[nodiscard]] CachePtr copy(bool deep) const override;
  [[nodiscard]] Result<CachePtr> from_state() const override;
  [[nodiscard]] Result<Value> offset() const override;
  [[nodiscard]] Result<Pair> update(const Array& k, const Array& v) override;
  [[nodiscard]] Result<Pair> keys_and_values() const override;
  [[nodiscard]] Result<std::int64_t> trim(std::int64_t n) override;
  [[nodiscard]] Result<Value> make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                        bool return_array) const override;
  [[nodiscard]] Result<CachePtr> extract(std::int64_t row) const override;
  [[nodiscard]] Status filter(const Ints& rows) override;
  [[nodiscard]] Status extend(Cache& other) override;
  [[nodiscard]] Status prepare(const std::optional<Ints>& left_padding,
                               const std::optional<Ints>& lengths,
                               const std::optional<Ints>& right_padding) override;
  [[nodiscard]] Status finalize() override;

 private:
  void append_chunk(BatchRotatingState& s, Writes& writes, const Array& k, const Array& v) const;
  void write_single(BatchRotatingState& s, Writes& writes, const Array& k, const Array& v) const;

  std::int64_t step_;
};

}  // namespace kvo::mlx_lm
