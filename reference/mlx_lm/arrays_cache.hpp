// reference/mlx_lm/arrays_cache.hpp: a list of state arrays of a layer without keys and values.
//
// Source   rule ML-60.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/mlx_lm/cache.hpp"
#include "reference/mlx_lm/change.hpp"

namespace kvo::mlx_lm {

struct ArraysState {
  std::shared_ptr<std::vector<Array>> arrays = nullptr;  ///< shared by shallow copies
  SharedInts left_padding = nullptr;
  SharedInts lengths = nullptr;

  [[nodiscard]] std::int64_t batch_size() const;
};

class ArraysCache final : public Cache, private Changing<ArraysState> {
 public:
  ArraysCache(QuirkSet<Quirk> quirks, ArraysState state) : Changing(std::move(state), quirks) {}

  [[nodiscard]] std::string_view kind() const override { return "arrays"; }
  [[nodiscard]] Value::List state() const override;
  [[nodiscard]] Result<Info> info() const override;
  [[nodiscard]] CachePtr copy(bool deep) const override;
  [[nodiscard]] Result<CachePtr> from_state() const override { return copy(false); }
  [[nodiscard]] Result<Value> make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                        bool return_array) const override;
  [[nodiscard]] Result<CachePtr> merge(std::span<const Cache* const> caches) const override;
  [[nodiscard]] Result<CachePtr> extract(std::int64_t row) const override;
  [[nodiscard]] Status filter(const Ints& rows) override;
  [[nodiscard]] Status extend(Cache& other) override;
  [[nodiscard]] Status prepare(const std::optional<Ints>& left_padding,
                               const std::optional<Ints>& lengths,
                               const std::optional<Ints>& right_padding) override;
  [[nodiscard]] Status finalize() override;
  [[nodiscard]] Status set(std::int64_t entry, const Array& array) override;
  [[nodiscard]] Status advance(std::int64_t n) override;
};

}  // namespace kvo::mlx_lm
