// reference/mlx_lm/rotating_cache.hpp: a ring of the newest tokens behind the first ones.
//
// Source   rules ML-10 to ML-16.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "reference/mlx_lm/plain_caches.hpp"

namespace kvo::mlx_lm {

struct RotatingState {
  Buffers buffers = {};
  std::int64_t offset = 0;
  std::int64_t keep = 0;
  std::int64_t max_size = 0;
  std::int64_t idx = 0;  ///< slot that is written next

  /// A buffer in time order (ML-12).
  [[nodiscard]] Tensor in_time_order(const Tensor& side) const;
};

class RotatingCache final : public Cache, private Changing<RotatingState> {
 public:
  RotatingCache(std::int64_t step, QuirkSet<Quirk> quirks, RotatingState state)
      : Changing(std::move(state), quirks), step_(step) {}

  [[nodiscard]] std::string_view kind() const override { return "rotating"; }
  [[nodiscard]] Value::List state() const override {
    return {s_.buffers.k, s_.buffers.v, s_.offset, s_.keep, s_.max_size, s_.idx};
  }
  [[nodiscard]] Result<Info> info() const override {
    return Info{size(), !s_.buffers.k, s_.buffers.bytes(), is_trimmable()};
  }
  [[nodiscard]] bool is_trimmable() const override { return s_.offset < s_.max_size; }
  [[nodiscard]] CachePtr copy(bool deep) const override;
  [[nodiscard]] Result<CachePtr> from_state() const override { return copy(false); }
  [[nodiscard]] Result<Value> offset() const override { return Value(s_.offset); }
  [[nodiscard]] Result<Pair> update(const Array& k, const Array& v) override;
  [[nodiscard]] Result<Pair> keys_and_values() const override;
  [[nodiscard]] Result<std::int64_t> trim(std::int64_t n) override;
  [[nodiscard]] Result<Value> make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                        bool return_array) const override;
  [[nodiscard]] Result<CachePtr> merge(std::span<const Cache* const> caches) const override;
  /// For merges.
  [[nodiscard]] const RotatingState& contents() const { return s_; }
  [[nodiscard]] std::int64_t size() const { return std::min(s_.offset, s_.max_size); }

 private:
  void append_chunk(RotatingState& s, const Array& k, const Array& v) const;
  void write_single(RotatingState& s, Writes& writes, const Array& k, const Array& v) const;
  [[nodiscard]] Value mask_of_one(std::int64_t window) const;

  std::int64_t step_;
};

}  // namespace kvo::mlx_lm
