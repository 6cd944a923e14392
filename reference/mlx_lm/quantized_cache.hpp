// reference/mlx_lm/quantized_cache.hpp: a cache of quantized rows.
//
// Source   rules ML-30 to ML-32.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/mlx_lm/cache.hpp"
#include "reference/mlx_lm/change.hpp"

namespace kvo::mlx_lm {

/// Words, scales and biases of rows (ML-31).
/// Errors  Misuse: no such group size or bits, or rows that are not whole groups.
[[nodiscard]] Arrays quantized(const Tensor& rows, std::int64_t group_size, std::int64_t bits);
/// The rows again, in the type of the scales. Errors  Misuse: as quantized.
[[nodiscard]] Tensor dequantized(const Quantized& rows, std::int64_t group_size, std::int64_t bits);

struct QuantizedState {
  Arrays k = {};  ///< words, scales, biases; empty: no buffer
  Arrays v = {};
  std::int64_t offset = 0;
  std::int64_t group_size = 64;
  std::int64_t bits = 8;
};

class QuantizedCache final : public Cache, private Changing<QuantizedState> {
 public:
  QuantizedCache(std::int64_t step, QuirkSet<Quirk> quirks, QuantizedState state)
      : Changing(std::move(state), quirks), step_(step) {}

  [[nodiscard]] std::string_view kind() const override { return "quantized"; }
  [[nodiscard]] Value::List state() const override;
  [[nodiscard]] Result<Info> info() const override;
  [[nodiscard]] bool is_trimmable() const override { return true; }
  [[nodiscard]] CachePtr copy(bool deep) const override;
  [[nodiscard]] Result<CachePtr> from_state() const override { return copy(false); }
  [[nodiscard]] Result<Value> offset() const override { return Value(s_.offset); }
  [[nodiscard]] Result<Pair> update(const Array& k, const Array& v) override;
  [[nodiscard]] Result<Pair> keys_and_values() const override;
  [[nodiscard]] Result<std::int64_t> trim(std::int64_t n) override;
  [[nodiscard]] Result<Value> make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                        bool return_array) const override;
  [[nodiscard]] Result<std::vector<Tensor>> dequantized() const override;

 private:
  std::int64_t step_;
};

}  // namespace kvo::mlx_lm
