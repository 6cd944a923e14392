// reference/mlx_lm/plain_caches.hpp: caches of all tokens: kv, concatenate, chunked.
//
// Source   rules ML-1 to ML-8, ML-20 to ML-22.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "reference/mlx_lm/cache.hpp"
#include "reference/mlx_lm/change.hpp"

namespace kvo::mlx_lm {

/// The keys and values of a cache, and what every kind does with them.
struct Buffers {
  Array k = nullptr;
  Array v = nullptr;

  /// The same content in objects of its own.
  [[nodiscard]] Buffers cloned() const { return {clone(k), clone(v)}; }
  /// Every array replaced by what `change` makes of it. Errors  Misuse: there is no buffer.
  template <class Change>
  void replace(const Change& change) {
    if (!k || !v) throw Misuse("there is no buffer");
    k = array_of(change(*k));
    v = array_of(change(*v));
  }
  /// Adds slots to what `kept` leaves of each buffer, or takes them as the first ones.
  /// Errors  Misuse: they do not fit.
  template <class Kept>
  void append(const Tensor& more_k, const Tensor& more_v, const Kept& kept) {
    k = array_of(k ? joined(kept(*k), more_k) : more_k);
    v = array_of(v ? joined(kept(*v), more_v) : more_v);
  }
  void append(const Tensor& more_k, const Tensor& more_v) {
    append(more_k, more_v, [](const Tensor& side) { return side; });
  }
  /// Slots for L more tokens after `offset` of them, by whole steps (ML-1).
  void grow(const Tensor& rows_k, const Tensor& rows_v, std::int64_t offset, std::int64_t step);
  /// Puts rows at slots [begin, end) when `writes` are carried out.
  void put(Writes& writes, std::int64_t begin, std::int64_t end, const Array& rows_k,
           const Array& rows_v) const {
    writes.put(k, begin, end, *rows_k);
    writes.put(v, begin, end, *rows_v);
  }
  /// The first `count` slots.
  [[nodiscard]] Pair first(std::int64_t count) const {
    (void)slots(k);
    return {{{k}, count}, {{v}, count}};
  }
  /// The same, but the objects where there are not more (ML-2).
  [[nodiscard]] Pair first_or_all(std::int64_t count) const {
    if (count < slots(k)) return first(count);
    return {{{k}}, {{v}}};
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_of(k) + bytes_of(v); }
};

struct KvState {
  Buffers buffers = {};
  std::int64_t offset = 0;
};

class KvCache final : public Cache, private Changing<KvState> {
 public:
  KvCache(std::int64_t step, QuirkSet<Quirk> quirks, KvState state = {})
      : Changing(std::move(state), quirks), step_(step) {}

  [[nodiscard]] std::string_view kind() const override { return "kv"; }
  [[nodiscard]] Value::List state() const override {
    return {s_.buffers.k, s_.buffers.v, s_.offset};
  }
  [[nodiscard]] Result<Info> info() const override {
    return Info{s_.offset, !s_.buffers.k, s_.buffers.bytes(), true};
  }
  [[nodiscard]] bool is_trimmable() const override { return true; }
  [[nodiscard]] CachePtr copy(bool deep) const override;
  [[nodiscard]] Result<CachePtr> from_state() const override { return copy(false); }
  [[nodiscard]] Result<Value> offset() const override { return Value(s_.offset); }
  [[nodiscard]] Result<Pair> update(const Array& k, const Array& v) override;
  [[nodiscard]] Result<Pair> keys_and_values() const override;
  [[nodiscard]] Result<std::int64_t> trim(std::int64_t n) override;
  [[nodiscard]] Result<Value> make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                        bool return_array) const override;
  [[nodiscard]] Result<CachePtr> merge(std::span<const Cache* const> caches) const override;
  [[nodiscard]] Result<CachePtr> to_quantized(std::int64_t group_size,
                                              std::int64_t bits) const override;
  /// For merges.
  [[nodiscard]] const KvState& contents() const { return s_; }

 private:
  std::int64_t step_;
};

class ConcatenateCache final : public Cache, private Changing<KvState> {
 public:
  explicit ConcatenateCache(QuirkSet<Quirk> quirks, KvState state = {})
      : Changing(std::move(state), quirks) {}

  [[nodiscard]] std::string_view kind() const override { return "concatenate"; }
  [[nodiscard]] Value::List state() const override { return {s_.buffers.k, s_.buffers.v}; }
  [[nodiscard]] Result<Info> info() const override {
    return Info{0, !s_.buffers.k, s_.buffers.bytes(), true};
  }
  [[nodiscard]] bool is_trimmable() const override { return true; }
  [[nodiscard]] CachePtr copy(bool deep) const override;
  [[nodiscard]] Result<CachePtr> from_state() const override;
  [[nodiscard]] Result<Value> offset() const override { return Value(s_.offset); }
  [[nodiscard]] Result<Pair> update(const Array& k, const Array& v) override;
  [[nodiscard]] Result<Pair> keys_and_values() const override {
    return Pair{{{s_.buffers.k}}, {{s_.buffers.v}}};
  }
  [[nodiscard]] Result<std::int64_t> trim(std::int64_t n) override;
  [[nodiscard]] Result<Value> make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                        bool return_array) const override;
};

struct ChunkedState {
  Buffers buffers = {};
  std::int64_t offset = 0;
  std::int64_t chunk_size = 0;
  std::int64_t start = 0;  ///< position of the first slot
};

class ChunkedCache final : public Cache, private Changing<ChunkedState> {
 public:
  ChunkedCache(std::int64_t step, QuirkSet<Quirk> quirks, ChunkedState state)
      : Changing(std::move(state), quirks), step_(step) {}

  [[nodiscard]] std::string_view kind() const override { return "chunked"; }
  [[nodiscard]] Value::List state() const override {
    return {s_.buffers.k, s_.buffers.v, s_.offset, s_.chunk_size, s_.start};
  }
  [[nodiscard]] Result<Info> info() const override {
    return Info{0, !s_.buffers.k, s_.buffers.bytes(), is_trimmable()};
  }
  [[nodiscard]] bool is_trimmable() const override {
    return s_.start == 0 || has(Quirk::kSlidChunkTrimmed);
  }
  [[nodiscard]] CachePtr copy(bool deep) const override;
  [[nodiscard]] Result<CachePtr> from_state() const override { return copy(false); }
  [[nodiscard]] Result<Value> offset() const override { return Value(s_.offset); }
  [[nodiscard]] Result<Pair> update(const Array& k, const Array& v) override;
  [[nodiscard]] Result<Pair> keys_and_values() const override;
  [[nodiscard]] Result<std::int64_t> trim(std::int64_t n) override;
  [[nodiscard]] Result<std::vector<std::int64_t>> maybe_trim_front() override;

 private:
  std::int64_t step_;
};

}  // namespace kvo::mlx_lm
